"""``agent0 router evaluate``: a checkpoint through a strategy, beside itself alone and the other model alone."""

import secrets
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from agent0.cli import console
from agent0.cli.models.calibrate import Reporter, trained
from agent0.errors import ConfigError
from agent0.evaluation.routed.standings import WAYS, as_row, paired_row
from agent0.routing.budgets import dollars

if TYPE_CHECKING:
    from agent0.assembly.evaluation.routed import Evaluated


def evaluate(
    checkpoint: Annotated[str, typer.Argument(help="RUN/CHECKPOINT of a trained student, or base.")] = "base",
    with_: Annotated[
        list[str] | None, typer.Option("--with", help="provider/model that stands in; may be given again, in order.")
    ] = None,
    strategy: Annotated[str, typer.Option(help="agent0 router strategies; empty: as the settings have it.")] = "",
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="Confidence from which its own answer is given.")
    ] = None,
    items: Annotated[int, typer.Option(min=1, help="Held-out tasks.")] = 300,
    split: Annotated[Literal["validation", "test"], typer.Option(help="Of which split.")] = "test",
    seed: Annotated[int, typer.Option(min=0, help="Draws tasks.")] = 0,
    way: Annotated[
        list[str] | None, typer.Option(help="local, routed or cloud: only these; without: all three, paired.")
    ] = None,
    resume: Annotated[str, typer.Option(help="Id of an evaluation to go on with.")] = "",
    profile: console.Profile = None,
    set_: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Evaluate a student through a strategy (local first, another model where it is worth its price) on verified
    held-out tasks, and each of the two alone, under the budgets. Answers name who gave them, and nothing is trained on
    them. JSON: in nano-dollars.

    Killed or out of budget, it goes on with --resume: no task is asked twice."""
    from agent0.assembly.evaluation.routed import Plan, evaluate_routed

    settings = console.settings(profile, [*(set_ or ()), *_pairs(with_, strategy, threshold)])
    identity = resume or f"routed-{secrets.token_hex(3)}"
    console.say(f"Evaluation {identity}: {settings.run.student.provider}, data in {settings.home}")
    if unknown := sorted({*(way or ())} - {*WAYS}):
        raise ConfigError(f"There is no way {unknown[0]!r}.", f"Known: {', '.join(WAYS)}.")
    ways = tuple(name for name in WAYS if not way or name in way)
    plan = Plan(items, split, seed, ways, **trained(settings, checkpoint))
    evaluation = console.run_async(lambda: evaluate_routed(settings, plan, identity, Reporter(checkpoint, as_json)))
    _show(evaluation, as_json)


def _show(evaluation: "Evaluated", as_json: bool) -> None:
    """The ways, then the comparisons."""
    rows, pairs = (
        [as_row(standing) for standing in evaluation.standings],
        [paired_row(pair) for pair in evaluation.paired],
    )
    if as_json:
        console.data({"run": evaluation.run, "strategy": evaluation.strategy, "ways": rows, "paired": pairs})
        return
    shown = [{**row, "cost": dollars(cast(int, row["cost"]))} for row in rows]
    console.table(shown, False, ("way", "tasks", "right", "accuracy", "low", "high", "cost", "answered"))
    if pairs:
        console.table(pairs, False, ("routed_less", "tasks", "difference", "low", "high", "p", "verdict", "cost_share"))


def _pairs(models: list[str] | None, strategy: str, threshold: float | None) -> list[str]:
    """The settings that the options stand for."""
    prefix = "run.student.distil_routing"
    return [
        *([f"run.student.distil_from={','.join(models)}"] if models else []),
        *([f"{prefix}.strategy={strategy}"] if strategy else []),
        *([] if threshold is None else [f"{prefix}.threshold={threshold}"]),
    ]
