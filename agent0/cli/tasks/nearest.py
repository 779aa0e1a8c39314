"""``agent0 task nearest``: how near the tasks of a run come to the items of a benchmark."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from agent0.assembly.runtime.model_ports import OpenEmbedders
from agent0.cli import console, flags, lookup
from agent0.cli.evaluation.options import HERE, Data
from agent0.errors import NotFoundError
from agent0.infra.embeddings.benchmark_index import BenchmarkRows
from agent0.projections.runs import resolve
from agent0.projections.tasks import list_tasks
from agent0.settings import Settings
from agent0.stats.intervals import quantile
from agent0.tasks.nearest_items import NearestItem, nearest_items

SHARES = (0.5, 0.9, 0.99)
MOST = 1_000_000
"""Tasks of a run that are read."""


def nearest(
    run: console.Run = "LAST",
    data: Data = HERE,
    benchmark: Annotated[str, typer.Option(help="Whose items.")] = "gsm8k",
    embedder: Annotated[str, typer.Option(help="minilm, or ngram where no model is to be loaded.")] = "minilm",
    limit: Annotated[int, typer.Option(min=1, help="Tasks shown, the nearest first.")] = 10,
    as_json: console.Json = False,
) -> None:
    """How near the accepted tasks of a run come to a benchmark: for each its nearest item, by embedding, and the words
    in a row that both have. Its trained tasks are among them; what is too near was refused before it was attempted."""
    settings = flags.settings()
    with lookup.tables(settings) as db:
        of = resolve(db, run)
        tasks = list_tasks(db, of, status="accepted", limit=MOST)
    questions = [str(task["question"]) for task in tasks]
    if not questions:
        raise NotFoundError(f"{of} has no accepted task.", fix=f"See: agent0 task list {of}")
    items = console.run_async(lambda: _nearest_items(settings, questions, data, benchmark, embedder))
    rows = [{"task": task["task"], **asdict(item)} for task, item in zip(tasks, items, strict=True)]
    rows.sort(key=lambda row: (-row["similarity"], row["task"]))
    if as_json:
        console.data(rows)
        return
    console.text(_distribution(items, benchmark))
    console.table(rows[:limit], False)


async def _nearest_items(
    settings: Settings, questions: list[str], data: Path, benchmark: str, embedder: str
) -> list[NearestItem]:
    references = [each for each in BenchmarkRows(data, None).references if each.benchmark == benchmark]
    if not references:
        raise NotFoundError(f"{data} has no rows of {benchmark}.", fix="See: agent0 bench list")
    stems = [reference.stems[-1] for reference in references]
    embedders = OpenEmbedders(settings)
    try:
        model = embedders.open(embedder)
        vectors = [await model.embed(texts) for texts in (questions, stems)]
    finally:
        await embedders.close()
    return nearest_items(questions, vectors[0], references, vectors[1])


def _distribution(items: list[NearestItem], benchmark: str) -> str:
    similarities = " / ".join(f"{quantile([item.similarity for item in items], share):.2f}" for share in SHARES)
    words = " / ".join(f"{quantile([item.words for item in items], share):.0f}" for share in SHARES)
    nearest = max(items, key=lambda item: item.similarity)
    return (
        f"{len(items)} accepted tasks, each beside its nearest item of {benchmark}: similarity {similarities}, at most "
        f"{nearest.similarity:.2f}; words in a row {words}, at most {max(item.words for item in items)} "
        f"({', '.join(f'{share:.0%}' for share in SHARES)} of the tasks are below)."
    )
