"""Of ``agent0 model``: ``list``, ``show``, ``card``, ``compare``, ``ab``, ``repeat``, ``exam``, ``rejudge``,
``promote``, ``rollback`` and ``prune``: the checkpoints there are, side by side, and a person's word on them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.cli import console, flags, lookup
from agent0.config.catalogue import catalogue, stored_models
from agent0.errors import sentence
from agent0.evaluation.checkpoint_registry import side_by_side
from agent0.projections.base import select
from agent0.projections.checkpoints import find_checkpoint, find_student, list_protocol_results, registry
from agent0.projections.evaluations import list_evaluations
from agent0.projections.runs import show_run
from agent0.projections.training_steps import list_trainings
from agent0.report.columns import STEP_COLUMNS
from agent0.report.markdown.model_card import model_card
from agent0.state.run_state import BASE

Checkpoint = Annotated[
    str,
    typer.Argument(metavar="CHECKPOINT", help="RUN/CHECKPOINT, or its adapter's digest.", callback=lookup.of_newest),
]


def list_(
    run: Annotated[str, typer.Option(help="Those of one run or experiment.")] = "",
    role: Annotated[str, typer.Option(help="student or teacher.")] = "",
    status: Annotated[str, typer.Option(help="promoted, rejected, trained, unchanged, failed or rolled_back.")] = "",
    available: Annotated[bool, typer.Option("--available", help="Models that `agent0 model get` knows.")] = False,
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """Checkpoints of all runs and experiments, newest first."""
    if available:
        show_available(as_json)
        return
    with lookup.tables() as db:
        of = lookup.of_newest(run) if run else ""
        rows = console.limited(lambda n: _listed(registry(db, of, role, status, n), as_json), limit)
    console.table(rows, as_json)


def show_available(as_json: bool) -> None:
    """Every model of the catalogue, and whether it is stored."""
    stored = stored_models(flags.settings().home)
    rows = []
    for name, entry in catalogue().items():
        here, size = stored.get(name), entry.bytes or (stored[name].bytes if name in stored else 0)
        plain = entry.model_dump(mode="json") | {"stored": bool(here and not here.problem)}
        shown = {
            "MiB": size >> 20 or None,
            "sources": ", ".join(source.kind for source in entry.sources),
            "measured": next((f"{score.of.partition(',')[0]} {score.value}" for score in entry.scores), None),
        }
        rows.append(plain if as_json else plain | shown)
    console.table(rows, as_json, ("name", "stored", "MiB", "licence", "context", "tool_form", "measured", "sources"))
    for problem in (f"{name}: {here.problem} agent0 model get {name}" for name, here in stored.items() if here.problem):
        console.say(problem, "yellow")


def _listed(rows: Sequence[Mapping[str, Any]], as_json: bool) -> list[Mapping[str, Any]]:
    """``rows``, on a screen with the first twelve digits of a digest."""
    return [row if as_json else {**row, "adapter": (row["adapter"] or "")[:12]} for row in rows]


def show(checkpoint: Checkpoint, as_json: console.Json = False) -> None:
    """One checkpoint: what it was made of, what the steps of its training come to, how it was judged, and every score
    it has."""
    with lookup.tables() as db:
        record = find_checkpoint(db, checkpoint)
        scores = [s for s in list_evaluations(db, record["run"]) if s["checkpoint"] == record["checkpoint"]]
        steps = list_trainings(db, record["run"], record["checkpoint"])
    if as_json:
        console.data({**record, "evaluations": scores, "training": next(iter(steps), None)})
        return
    console.record({name: value for name, value in record.items() if value != {}}, False)
    if steps:
        console.table(steps, False, STEP_COLUMNS, title="\nIts training, from each of its steps")
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
    counted = (
        "SELECT family, count(*) AS n FROM tasks WHERE run = ? AND status = 'accepted' GROUP BY family ORDER BY n DESC"
    )
    with lookup.tables() as db:
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
        str, typer.Argument(metavar="A", help="RUN/CHECKPOINT, RUN/base, or a digest.", callback=lookup.of_newest)
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="Another.", callback=lookup.of_newest)],
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Two checkpoints by what is recorded: the paired test on validation, and where their recipes differ. For new
    tasks, answered by both: `agent0 model ab`."""
    with lookup.tables() as db:
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
