"""``agent0 router evaluate``: a checkpoint through a strategy, beside itself alone and the other model alone."""

import secrets
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from agent0.assembly.evaluation.calibration import Plan as CalibrationPlan
from agent0.assembly.evaluation.calibration import calibrate as measure
from agent0.assembly.evaluation.routed import Evaluated, Plan, evaluate_routed
from agent0.cli import console, flags
from agent0.cli.models.calibrate import Reporter, command_line, plain, show, trained, write_page
from agent0.errors import ConfigError
from agent0.evaluation.calibration_report import CalibrationReport
from agent0.evaluation.routed import WAYS, as_row, paired_row
from agent0.report.markdown.calibration import page as page_of
from agent0.routing.budgets import dollars
from agent0.settings import RoutingConfig, Settings


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
    settings = flags.settings(profile, [*(set_ or ()), *strategy_pairs(with_, strategy, threshold)])
    identity = resume or f"routed-{secrets.token_hex(3)}"
    console.say(f"Evaluation {identity}: {settings.run.student.provider}, data in {settings.home}")
    if unknown := sorted({*(way or ())} - {*WAYS}):
        raise ConfigError(f"There is no way {unknown[0]!r}.", f"Known: {', '.join(WAYS)}.")
    ways = tuple(name for name in WAYS if not way or name in way)
    plan = Plan(items, split, seed, ways, **trained(settings, checkpoint))
    evaluation = console.run_async(lambda: evaluate_routed(settings, plan, identity, Reporter(checkpoint, as_json)))
    _show(evaluation, as_json)


def _show(evaluation: Evaluated, as_json: bool) -> None:
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


def strategy_pairs(models: list[str] | None, strategy: str, threshold: float | None = None) -> list[str]:
    """The settings that ``--with``, ``--strategy`` and ``--threshold`` stand for."""
    prefix = "run.student.distil_routing"
    return [
        *([f"run.student.distil_from={','.join(models)}"] if models else []),
        *([f"{prefix}.strategy={strategy}"] if strategy else []),
        *([] if threshold is None else [f"{prefix}.threshold={threshold}"]),
    ]


def calibrate(
    provider: Annotated[str | None, typer.Option(help="The student's: tiny, ollama, openai …")] = None,
    model: Annotated[str | None, typer.Option(help="Model name or folder.")] = None,
    checkpoint: Annotated[str, typer.Option(help="RUN/CHECKPOINT of a trained student, or base.")] = "base",
    items: Annotated[int, typer.Option(min=20, help="Tasks a seed; half of them to fit on.")] = 640,
    samples: Annotated[int, typer.Option(min=0, max=64, help="Further samples of a turn, for agreement.")] = 4,
    critique: Annotated[bool, typer.Option(help="Ask it whether its answer is right.")] = True,
    drawn: Annotated[
        bool, typer.Option("--drawn", help="At its temperature, as attempts of a run; without: greedy, as evaluations.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Draws tasks and samples.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="How many seeds, from --seed on.")] = 1,
    page: Annotated[
        Path | None, typer.Option(callback=console.in_folder, help="Write what was found as a Markdown page.")
    ] = None,
    note: Annotated[str, typer.Option(help="A sentence for the page: where the student comes from.")] = "",
    resume: Annotated[str, typer.Option(help="Id of a calibration to go on with.")] = "",
    profile: console.Profile = None,
    set_: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Fit what makes a probability of all that a strategy measures of a turn, on verified held-out tasks, and score it
    on others. Prints the settings by which strategies use it.

    Killed, it goes on with --resume: no task is asked twice."""
    settings = flags.settings(profile, set_, run__student__provider=provider, run__student__model=model)
    identity = resume or f"router-calibration-{secrets.token_hex(3)}"
    console.say(f"Calibration {identity}: {settings.run.student.provider}, data in {settings.home}")
    how = (items, samples, critique, drawn)
    numbers = range(seed, seed + seeds)
    measurements = [_measured(settings, checkpoint, f"{identity}-{n}", n, how, as_json) for n in numbers]
    if page:
        write_page(page, page_of(measurements, command_line(), note, turns=True))
    if as_json:
        console.data([{**plain(each), "settings": settings_of(each)} for each in measurements])
        return
    for line in _lines(measurements[0]):
        console.text(line)


def _measured(
    settings: Settings, student: str, run: str, seed: int, how: tuple[int, int, bool, bool], quiet: bool
) -> CalibrationReport:
    """Calibrate with one seed and report progress. ``how``: items, samples, critique, drawn."""
    items, samples, critique, drawn = how
    routing = RoutingConfig(samples=samples, self_critique=critique)
    plan = CalibrationPlan(
        items, 0, seed, routing=routing, drawn=drawn, at_once=256 // (samples + 1), **trained(settings, student)
    )
    measurement = console.run_async(lambda: measure(settings, plan, run, Reporter(f"{student}, seed {seed}", quiet)))
    if not quiet:
        show(measurement)
    return measurement


def settings_of(measurement: CalibrationReport) -> dict[str, object]:
    """The best calibrator of ``measurement`` as the setting that strategies read."""
    best = measurement.measured[0].candidate
    revision = measurement.revisions.get(best.signal, 1)
    version = f"{measurement.name}, {measurement.checkpoint}, revision {revision} ({measurement.run})"
    return {"signal": best.signal, "method": best.method, "parameters": list(best.parameters), "version": version}


def _lines(measurement: CalibrationReport) -> list[str]:
    """The setting as a profile has it."""
    name = measurement.name.partition(" routed")[0]
    values = [f"{key} = {value!r}".replace("'", '"') for key, value in settings_of(measurement).items()]
    return ["", f'[run.student.distil_routing.calibrators."{name}"]', *values]
