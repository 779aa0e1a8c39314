"""Of ``agent0 model``: ``list``, ``show``, ``card``, ``compare``, ``ab``, ``repeat``, ``exam``, ``rejudge``,
``promote``, ``rollback`` and ``prune``: the checkpoints there are, side by side, and a person's word on them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any

import typer

from agent0.cli import console
from agent0.errors import ConfigError, sentence
from agent0.events.values import Split

Checkpoint = Annotated[
    str,
    typer.Argument(metavar="CHECKPOINT", help="RUN/CHECKPOINT, or its adapter's digest.", callback=console.of_newest),
]
Reason = Annotated[str, typer.Option("--reason", "-r", help="Why; it is part of the event.")]


def list_(
    run: Annotated[str, typer.Option(help="Those of one run or experiment.")] = "",
    role: Annotated[str, typer.Option(help="student or teacher.")] = "",
    status: Annotated[str, typer.Option(help="promoted, rejected, trained, unchanged, failed or rolled_back.")] = "",
    available: Annotated[bool, typer.Option("--available", help="Models that `agent0 model get` knows.")] = False,
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """Checkpoints of all runs and experiments, newest first."""
    from agent0.cli.models.stored import show_available
    from agent0.projections.checkpoints import registry

    if available:
        show_available(as_json)
        return
    with console.tables() as db:
        of = console.of_newest(run) if run else ""
        rows = console.limited(lambda n: _listed(registry(db, of, role, status, n), as_json), limit)
    console.table(rows, as_json)


def _listed(rows: Sequence[Mapping[str, Any]], as_json: bool) -> list[Mapping[str, Any]]:
    """``rows``, on a screen with the first twelve digits of a digest."""
    return [row if as_json else {**row, "adapter": (row["adapter"] or "")[:12]} for row in rows]


def show(checkpoint: Checkpoint, as_json: console.Json = False) -> None:
    """One checkpoint: what it was made of, how it was judged, and every score it has."""
    from agent0.projections.checkpoints import find_checkpoint
    from agent0.projections.evaluations import list_evaluations

    with console.tables() as db:
        record = find_checkpoint(db, checkpoint)
        scores = [s for s in list_evaluations(db, record["run"]) if s["checkpoint"] == record["checkpoint"]]
    if as_json:
        console.data({**record, "evaluations": scores})
        return
    console.record({name: value for name, value in record.items() if value != {}}, False)
    columns = ("evaluation", "split", "n", "accuracy", "lower95", "upper95", "solved_within", "tool_use", "status")
    console.table(scores, False, columns, title="\nScores")


def card(
    checkpoint: Checkpoint,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", callback=console.in_folder, help="Write it there instead."),
    ] = None,
) -> None:
    """Write a model card in Markdown: data, training, scores with intervals beside their controls, limits, licence."""
    from agent0.projections.base import select
    from agent0.projections.checkpoints import find_checkpoint, list_protocol_results
    from agent0.projections.evaluations import list_evaluations
    from agent0.projections.runs import show_run
    from agent0.report.markdown.model_card import model_card
    from agent0.state.run_state import BASE

    counted = (
        "SELECT family, count(*) AS n FROM tasks WHERE run = ? AND status = 'accepted' GROUP BY family ORDER BY n DESC"
    )
    with console.tables() as db:
        record = find_checkpoint(db, checkpoint)
        families = {row["family"]: row["n"] for row in select(db, counted, (record["run"],))}
        exams = [
            exam for name in (record["checkpoint"], BASE) for exam in list_protocol_results(db, record["run"], name)
        ]
        text = model_card(record, show_run(db, record["run"]), list_evaluations(db, record["run"]), families, exams)
    if out is None:
        console.document(text)
        return
    console.write(out, text)
    console.text(str(out))


def compare(
    first: Annotated[
        str, typer.Argument(metavar="A", help="RUN/CHECKPOINT, RUN/base, or a digest.", callback=console.of_newest)
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="Another.", callback=console.of_newest)],
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Two checkpoints by what is recorded: the paired test on validation, and where their recipes differ. For new
    tasks, answered by both: `agent0 model ab`."""
    from agent0.evaluation.checkpoint_registry import side_by_side
    from agent0.projections.checkpoints import find_student
    from agent0.projections.evaluations import list_evaluations
    from agent0.projections.runs import show_run

    with console.tables() as db:
        rows = [find_student(db, checkpoint) for checkpoint in (first, second)]
        scores = [list_evaluations(db, row["run"]) for row in rows]
        plans = [show_run(db, row["run"])["config"]["evaluation"] for row in rows]
    comparison = side_by_side(rows, scores, plans)
    if as_json:
        console.data(comparison)
        return
    console.print_lines([f"{second} beside {first}: {sentence(comparison['word'])}"])
    if not full:
        return
    console.table(comparison["models"], False)
    exact = [{k: f"{v:g}" if isinstance(v, float) else v for k, v in row.items()} for row in comparison["recipe"]]
    console.table(exact, False, title="\nWhere their recipes differ")


Seed = Annotated[int, typer.Option(help="Draws the tasks.", min=0)]


def ab(
    first: Annotated[
        str, typer.Argument(metavar="A", help="RUN/CHECKPOINT, RUN/base, or a digest.", callback=console.of_newest)
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="Another.", callback=console.of_newest)],
    tasks: Annotated[int, typer.Option(help="Tasks at most.", min=10, max=100_000)] = 400,
    seed: Seed = 1,
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Compare two checkpoints on the same new held-out tasks until a sequential test decides. The outcome is an
    event of B's run."""
    from agent0.assembly.models.ab_test import compare_models, comparison_rows
    from agent0.report.score_answers import models_answer

    settings = console.settings()
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
        typer.Argument(metavar="CHECKPOINT", help="RUN/CHECKPOINT, RUN/base, or a digest.", callback=console.of_newest),
    ],
    repeats: Annotated[int, typer.Option(help="Draws.", min=2, max=1000)] = 5,
    n: Annotated[int, typer.Option("--n", help="Tasks a draw.", min=1, max=100_000)] = 150,
    seed: Seed = 1,
    as_json: console.Json = False,
) -> None:
    """How far a checkpoint's accuracy varies over several draws of held-out tasks. Its target: below 5 points."""
    from agent0.assembly.models.ab_test import repeat as answer

    settings = console.settings()
    event = console.run_async(lambda: answer(settings, checkpoint, repeats, n, seed, _quiet if as_json else _say))
    spread = stdev(event.accuracies)
    summary = {"checkpoint": event.checkpoint, "draws": repeats, "n": n, "mean": round(fmean(event.accuracies), 4)}
    console.record({**summary, "deviation": round(spread, 4), "below 5 points": spread < 0.05}, as_json)


def evaluate_protocol(
    checkpoint: Annotated[
        str,
        typer.Argument(metavar="CHECKPOINT", help="RUN/CHECKPOINT, RUN/base, or a digest.", callback=console.of_newest),
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
    from agent0.assembly.models.protocol import evaluate_protocols
    from agent0.evaluation.protocol import OWN_SETS, EvaluationProtocol, scores

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
    settings = console.settings()
    report = (lambda _: None) if as_json else (lambda event: console.say(f"{event.exam}: {event.wall_s:.0f} s"))
    results = console.run_async(lambda: evaluate_protocols(settings, {checkpoint: exams}, report))
    rows = [scores(event) for event in results]
    console.table(rows, as_json)


def rejudge(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="RUN[/CHECKPOINT]", help="A run, or one of its checkpoints.", callback=console.of_newest
        ),
    ],
    as_json: console.Json = False,
) -> None:
    """Judge the stored answers of all evaluations again, by the verifiers of today, and show which verdicts differ.
    Exit 1 where one does. No model is called; what is not stored is named."""
    from agent0.assembly.replay.rejudge import rejudge as judge_again

    settings = console.settings()
    result = console.run_async(lambda: judge_again(settings, checkpoint))
    if as_json:
        console.data(result)
    else:
        stored = [{**row, "answers": row["answers"] or "not stored"} for row in result["evaluations"]]
        console.table(stored, False)
        console.table(result["differences"], False, title="\nVerdicts that differ")
    if result["differences"]:
        raise typer.Exit(1)


def _levels(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        raise ConfigError(f"{text[:80]!r} are no levels.", fix="Write --levels 2,3.")
    return tuple(sorted(set(map(int, parts))))


def _say(at: Any) -> None:
    console.say(", ".join(f"{name} {value:.3g}" for name, value in at.items()))


def _quiet(at: Any) -> None:
    """Nothing is said."""


def promote(checkpoint: Checkpoint, reason: Reason = "", as_json: console.Json = False) -> None:
    """Make a checkpoint its run's student, whatever the gate said of it. One event; `rollback` undoes it."""
    from agent0.assembly.models.registry import promote as decide

    settings = console.settings()
    _show_decision(console.run_async(lambda: decide(settings, checkpoint, reason)), as_json)


def rollback(
    to: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="An earlier student, `base` included.")],
    run: Annotated[str, typer.Option(help="Run id, or LAST.")] = "LAST",
    reason: Reason = "",
    as_json: console.Json = False,
) -> None:
    """Go back to an earlier student: what was promoted since is let go. One event."""
    from agent0.assembly.models.registry import go_back
    from agent0.projections.runs import resolve

    settings = console.settings()
    with console.tables() as db:
        name = resolve(db, run)
    _show_decision(console.run_async(lambda: go_back(settings, name, to, reason)), as_json)


def prune(
    run: console.Run = "LAST",
    reason: Reason = "",
    commit: Annotated[bool, typer.Option("--commit", help="Throw them away; without it they are only named.")] = False,
    as_json: console.Json = False,
) -> None:
    """Adapters that a run which is over no longer needs: students it did not go on with and nothing else names. Their
    manifests stay, so `agent0 experiment retrain` makes them again."""
    from agent0.assembly.models.registry import prune as throw
    from agent0.projections.runs import resolve

    settings = console.settings()
    with console.tables() as db:
        name = resolve(db, run)
    pruning = console.run_async(lambda: throw(settings, name, reason, commit))
    if as_json:
        console.data(pruning)
        return
    console.table(pruning["pruned"], False)
    console.say(f"{pruning['bytes']:,} bytes." + ("" if commit else " Nothing is thrown away; --commit does it."))


def _show_decision(begun: Any, as_json: bool) -> None:
    event = begun.event
    student = getattr(event, "to", event.checkpoint)
    console.record({"run": begun.run, "event": begun.type, "student": student, "reason": event.reason}, as_json)
