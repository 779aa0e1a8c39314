"""The router: which model answers, and what that may cost."""

from contextlib import aclosing
from typing import Annotated, Any

import typer

from agent0.cli import console
from agent0.errors import ConfigError, NotFoundError

Scope = Annotated[str, typer.Argument(metavar="SCOPE", help="run, day, provider or user.")]
Name = Annotated[
    str, typer.Argument(metavar="[NAME]", help="A run, a date (empty: today), a provider, a user (empty: yours).")
]
COLUMNS = ("scope", "name", "cap", "spent", "reserved", "free", "level", "updated")


def strategies_(as_json: console.Json = False) -> None:
    """Strategies by which a role chooses between its model and those that stand in, and the settings each reads."""
    from agent0.assembly.runtime.plugins import load_plugins
    from agent0.routing.strategies import strategies

    load_plugins()
    rows = [{"strategy": e.name, "reads": ", ".join(e.reads), "what": e.what} for e in strategies().values()]
    console.table(rows, as_json, ("strategy", "reads", "what"))


def route(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What a model would be asked.")],
    role: Annotated[str, typer.Option(help="Whose models: teacher, student or judge.")] = "judge",
    confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="What each model's answer would have; without it: unknown.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Call no model; this is the default.")] = True,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """What the settings' strategy would ask, step by step, with the most that each model may cost. Calls no model; to
    call one: agent0 router ask. JSON: in nano-dollars."""
    from agent0.assembly.routing.asking import dry_route

    decision = dry_route(console.settings(None, pairs), role, text, confidence)
    if as_json:
        console.data(decision)
        return
    shown = [{**row, "most": _dollars(row["most"]) or "unknown"} for row in decision["models"]]
    console.table(shown, False, ("model", "most", "right"))
    steps = [{"step": n, **step} for n, step in enumerate(decision["steps"], 1)]
    console.table(steps, False, ("step", "ask", "give", "reason"))


def ask(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the model is asked.")],
    role: Annotated[str, typer.Option(help="Whose models: teacher, student or judge.")] = "judge",
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Ask a role's model, or those that stand in for it, under the budgets; the answer is shown while it is written.
    A model takes over only until the first words are shown (`router.hold`)."""
    from agent0.assembly.routing.asking import ask_role

    async def work() -> dict[str, Any]:
        async with aclosing(ask_role(console.settings(None, pairs), role, text)) as pieces:
            async for piece in pieces:
                if not isinstance(piece, str):
                    return {"model": piece.model, "text": piece.text, "finish": piece.finish, "note": piece.untrainable}
                if not as_json:
                    typer.echo(piece, nl=False)
        raise AssertionError("a turn ends with itself")

    answer = console.run_async(work)
    if as_json:
        console.data(answer)
        return
    typer.echo()
    console.say(f"By {answer['model']}.")


def explain(
    call: Annotated[str, typer.Argument(metavar="CALL", help="A route, or the beginning of one (`agent0 events`).")],
    as_json: console.Json = False,
) -> None:
    """Why a question was answered by the model that it was: features, probability, threshold, prices, who was refused
    and why, and each call with what it cost. JSON: in nano-dollars."""
    from agent0.projections.routes import show_route

    with console.tables() as db:
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
    from agent0.projections.model_usage import model_stats
    from agent0.report.columns import model_columns

    groups = by or ["model"]
    with console.tables() as db:
        rows = model_stats(db, groups, console.run_id(run) if run else "")
    if not rows and not as_json:
        console.say(
            "No remote model was called. Settings name one as provider/model; what it may cost is capped first:"
        )
        console.say("agent0 router budget set day --cap 5")
        return
    columns = (*groups, "calls", "errors", "cost", "p50_ms", "p95_ms", "saved", "escalations", "read", "written")
    shown = rows if as_json else [model_columns(row) for row in rows]
    console.table(shown, as_json, (*columns, "hits", "chosen", "retries"), keep=("cost",))


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Drop all answers; they are then asked for again.")] = False,
    as_json: console.Json = False,
) -> None:
    """Answers that are kept, by model: how many, their size, how often they were used again, what that saved."""
    from agent0.assembly.routing.gate import cached_models, clear_cache

    settings = console.settings()
    if clear:
        console.record({"dropped": clear_cache(settings)}, as_json)
        return
    kept = cached_models(settings)
    rows, shown = [vars(each) for each in kept], [{**vars(each), "saved": _dollars(each.saved)} for each in kept]
    console.table(rows if as_json else shown, as_json, ("provider", "model", "answers", "bytes", "hits", "saved"))


def list_(
    scope: Annotated[str, typer.Option(help="Only budgets of this scope: run, day, provider or user.")] = "",
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """Every budget with its cap, what is spent, and what is reserved for calls under way. JSON: in nano-dollars."""
    from agent0.assembly.routing.billing import scope_of
    from agent0.projections.budgets import list_budgets

    known_scope = scope_of(scope) if scope else ""
    with console.tables() as db:
        rows = console.limited(lambda n: list_budgets(db, known_scope, limit=n), limit)
    console.table(rows if as_json else rows.like(map(_shown, rows)), as_json, COLUMNS, keep=("free", "spent"))


def show(scope: Scope, name: Name = "", limit: console.Limit = 50, as_json: console.Json = False) -> None:
    """One budget, and its entries, newest first: the invoice. JSON: in nano-dollars."""
    from agent0.projections.budgets import list_budgets, list_entries

    budget_scope, named = _which(scope, name)
    with console.tables() as db:
        rows = list_budgets(db, budget_scope, named)
        entries = console.limited(lambda n: list_entries(db, budget_scope, named, n), limit)
    if not rows:
        _missing(budget_scope, named)
    if as_json:
        console.data({**rows[0], "entries": list(entries)})
        return
    console.record(_shown(rows[0]), False)
    shown = [{**row, "amount": _dollars(row["amount"]), "spent": _dollars(row["spent"])} for row in entries]
    console.table(entries.like(shown), False, ("seq", "time", "kind", "amount", "spent", "model", "reason", "prices"))


def set_(
    scope: Scope,
    name: Name = "",
    cap: Annotated[float | None, typer.Option("--cap", metavar="USD", min=0, max=1e9, help="US dollars.")] = None,
    no_cap: Annotated[bool, typer.Option("--no-cap", help="Take the cap away.")] = False,
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")] = "set by hand",
    as_json: console.Json = False,
) -> None:
    """Raise, lower or take away a cap. Calls that wait for it go on by themselves."""
    from agent0.assembly.routing.billing import change_cap

    if (cap is None) is not no_cap:
        raise ConfigError("A cap, or none?", fix="Give either --cap USD or --no-cap.")
    budget_scope, named = _which(scope, name)
    settings = console.settings()
    balance = console.run_async(lambda: change_cap(settings, budget_scope, named, cap, reason))
    row = {
        "scope": budget_scope,
        "name": named,
        "cap": balance.cap,
        "spent": balance.spent,
        "reserved": balance.reserved,
    }
    row["level"] = balance.level
    console.record(row if as_json else _shown(row), as_json)


def _which(scope: str, name: str) -> tuple[Any, str]:
    """The scope and the name that are meant; a run's id where one was named as runs are."""
    from agent0.assembly.routing.billing import name_of, scope_of

    budget_scope = scope_of(scope)
    named = name_of(console.settings(), budget_scope, name)
    return budget_scope, console.run_id(named) if budget_scope == "run" else named


def _missing(scope: str, name: str) -> None:
    fix = f"Budgets that there are: agent0 router budget list. A cap begins one: agent0 router budget set {scope} …"
    raise NotFoundError(f"Nothing was charged to {scope} {name}, and nothing caps it.", fix=fix)


def _dollars(amount: int | None) -> str:
    from agent0.routing.budgets import dollars

    return "" if amount is None else dollars(amount)


def _shown(row: Any) -> dict[str, Any]:
    """A budget as people read it."""
    cap = row["cap"]
    free = None if cap is None else max(0, cap - row["spent"] - row["reserved"])
    amounts = {"cap": cap, "spent": row["spent"], "reserved": row["reserved"], "free": free}
    rest = {key: value for key, value in row.items() if key not in (*amounts, "open", "token")}
    texts = {key: _dollars(value) for key, value in amounts.items()}
    return {**rest, **texts, "cap": texts["cap"] or "none", "free": texts["free"] or "any"}
