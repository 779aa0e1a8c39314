"""The router: which model answers, and what that may cost."""

from typing import Annotated

import typer

from agent0.cli import console, lookup
from agent0.projections.model_usage import model_stats
from agent0.projections.routes import show_route
from agent0.report.columns import model_columns
from agent0.routing.budgets import dollars


def explain(
    call: Annotated[str, typer.Argument(metavar="CALL", help="A route, or the beginning of one (`agent0 events`).")],
    as_json: console.Json = False,
) -> None:
    """Why a question was answered by the model that it was: features, probability, threshold, prices, who was refused
    and why, and each call with what it cost. JSON: in nano-dollars."""
    with lookup.tables() as db:
        decision = show_route(db, call)
    console.record(decision, as_json)


def stats(
    by: Annotated[
        list[str] | None, typer.Option("--by", help="model, role, domain or day; may be given again. Without: model.")
    ] = None,
    run: Annotated[str, typer.Option(help="Only this run's calls; LAST: the newest. Without: of all runs.")] = "",
    as_json: console.Json = False,
) -> None:
    """Calls of remote models, each try counted: latency, tokens, cost, errors, what the cache saved, and how often a
    strategy went on to a model. JSON: in nano-dollars."""
    groups = by or ["model"]
    with lookup.tables() as db:
        rows = model_stats(db, groups, lookup.run_id(run) if run else "")
    if not rows and not as_json:
        console.say(
            "No remote model was called. Settings name one as provider/model; what it may cost is capped first:"
        )
        console.say("agent0 router budget set day --cap 5")
        return
    columns = (*groups, "calls", "errors", "cost", "p50_ms", "p95_ms", "saved", "escalations", "read", "written")
    shown = rows if as_json else [model_columns(row) for row in rows]
    console.table(shown, as_json, (*columns, "hits", "chosen", "retries"), keep=("cost",))


def in_dollars(amount: int | None) -> str:
    """Format an amount in nano-dollars; empty where there is none."""
    return "" if amount is None else dollars(amount)
