"""Checkpoints that answer again: side by side, repeated, by an evaluation protocol, judged anew."""

from dataclasses import asdict
from statistics import fmean, stdev
from typing import Annotated, Any

import typer

from agent0.assembly.models.ab_test import compare_models, comparison_rows
from agent0.assembly.models.ab_test import repeat as answer
from agent0.assembly.models.protocol import evaluate_ensemble, evaluate_protocols
from agent0.cli import console, flags, lookup
from agent0.errors import ConfigError
from agent0.evaluation.protocol import OWN_SETS, EvaluationProtocol, scores
from agent0.events.values import Split
from agent0.report.score_answers import ensemble_answer, models_answer
from agent0.rollout.confidence.ensembles import Solver

Seed = Annotated[int, typer.Option(help="Draws the tasks.", min=0)]


def ab(
    first: Annotated[
        str, typer.Argument(metavar="A", help="RUN/CHECKPOINT, RUN/base, or a digest.", callback=lookup.of_newest)
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="Another.", callback=lookup.of_newest)],
    tasks: Annotated[int, typer.Option(help="Tasks at most.", min=10, max=100_000)] = 400,
    seed: Seed = 1,
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Compare two checkpoints on the same new held-out tasks until a sequential test decides. The outcome is an
    event of B's run."""
    settings = flags.settings()
    report = _quiet if as_json else _say
    event = console.run_async(lambda: compare_models(settings, first, second, tasks, seed, report))
    comparison = event.model_dump(mode="json")
    answer = models_answer(comparison)
    if as_json:
        console.data({**comparison, "answer": answer})
        return
    console.print_lines(answer)
    if full:
        console.record(comparison_rows(event), False)


def repeat(
    checkpoint: Annotated[
        str,
        typer.Argument(metavar="CHECKPOINT", help="RUN/CHECKPOINT, RUN/base, or a digest.", callback=lookup.of_newest),
    ],
    repeats: Annotated[int, typer.Option(help="Draws.", min=2, max=1000)] = 5,
    n: Annotated[int, typer.Option("--n", help="Tasks a draw.", min=1, max=100_000)] = 150,
    seed: Seed = 1,
    as_json: console.Json = False,
) -> None:
    """How far a checkpoint's accuracy varies over several draws of held-out tasks. Its target: below 5 points."""
    settings = flags.settings()
    event = console.run_async(lambda: answer(settings, checkpoint, repeats, n, seed, _quiet if as_json else _say))
    spread = stdev(event.accuracies)
    summary = {"checkpoint": event.checkpoint, "draws": repeats, "n": n, "mean": round(fmean(event.accuracies), 4)}
    console.record({**summary, "deviation": round(spread, 4), "below 5 points": spread < 0.05}, as_json)


def evaluate_protocol(
    checkpoint: Annotated[
        str,
        typer.Argument(metavar="CHECKPOINT", help="RUN/CHECKPOINT, RUN/base, or a digest.", callback=lookup.of_newest),
    ],
    n: Annotated[int, typer.Option("--n", help="Tasks.", min=1, max=100_000)] = 150,
    attempts: Annotated[int, typer.Option(help="Of each task, where it samples.", min=1, max=1000)] = 8,
    temperatures: Annotated[str, typer.Option(help="0: greedy, once a task.")] = "0,1",
    split: Annotated[Split, typer.Option(help="Which held-out tasks.")] = "validation",
    levels: Annotated[str, typer.Option(help="As 2,3; empty: all.")] = "",
    forced_tool: Annotated[bool, typer.Option("--forced-tool", help="Each attempt begins with a tool call.")] = False,
    seed: Seed = 1,
    fresh: Annotated[bool, typer.Option("--fresh", help="Tasks that the run itself did not score on.")] = False,
    as_json: console.Json = False,
) -> None:
    """Evaluate a checkpoint by a protocol of several attempts at each held-out task: pass@1, verifier-selected pass@k,
    and maj@k. Do not select anything on the test split."""
    try:
        heats = [float(heat) for heat in temperatures.split(",")]
    except ValueError:
        raise ConfigError(f"{temperatures[:80]!r} are no temperatures.", fix="Write --temperatures 0,0.7,1.") from None
    if any(not 0 <= heat <= 100 for heat in heats):
        raise ConfigError("A temperature lies between 0 and 100.", fix="Write --temperatures 0,0.7,1.")
    excluded = (OWN_SETS,) if fresh else ()
    exams = [
        EvaluationProtocol(n, seed, attempts if heat else 1, heat, split, forced_tool, _levels(levels), excluded)
        for heat in heats
    ]
    settings = flags.settings()
    report = (lambda _: None) if as_json else (lambda event: console.say(f"{event.exam}: {event.wall_s:.0f} s"))
    results = console.run_async(lambda: evaluate_protocols(settings, {checkpoint: exams}, report))
    rows = [scores(event) for event in results]
    console.table(rows, as_json)


def ensemble(
    members: Annotated[
        list[str], typer.Argument(metavar="CHECKPOINT…", help="Two or more of RUN/CHECKPOINT, RUN/base, digests.")
    ],
    n: Annotated[int, typer.Option("--n", help="Tasks.", min=1, max=100_000)] = 150,
    attempts: Annotated[int, typer.Option(help="Of each task by each.", min=2, max=1000)] = 8,
    temperature: Annotated[float, typer.Option(min=0.01, max=100, help="Of each attempt.")] = 1.0,
    split: Annotated[Split, typer.Option(help="Which held-out tasks.")] = "validation",
    seed: Seed = 1,
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """What a vote of checkpoints adds, an attempt each: as a solver, a verdict and an uncertainty, beside the best of
    them alone and the majority of as many attempts of its own. Tasks are those that no member's run scored on."""
    names = [*map(lookup.of_newest, members)]
    exam = EvaluationProtocol(n, seed, attempts, temperature, split, excluded=(OWN_SETS,))
    settings = flags.settings()
    report = _quiet if as_json else (lambda event: console.say(f"{event.checkpoint}: {event.wall_s:.0f} s"))
    results = console.run_async(lambda: evaluate_ensemble(settings, names, exam, report))
    answer = ensemble_answer(results, split)
    if as_json:
        console.data({**asdict(results), "answer": answer})
        return
    console.print_lines(answer)
    if full:
        solvers = (*results.members, *results.majorities, results.vote)
        console.table([_solver(solver) for solver in solvers], False)


def _solver(solver: Solver) -> dict[str, Any]:
    interval = f"{solver.lower95:.3f} to {solver.upper95:.3f}"
    return {"solver": solver.name, "attempts": solver.attempts, "right": round(solver.accuracy, 3), "95 %": interval}


def _levels(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        raise ConfigError(f"{text[:80]!r} are no levels.", fix="Write --levels 2,3.")
    return tuple(sorted(set(map(int, parts))))


def _say(at: Any) -> None:
    console.say(", ".join(f"{name} {value:.3g}" for name, value in at.items()))


def _quiet(at: Any) -> None:
    """Nothing is said."""
