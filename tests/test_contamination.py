"""From files of rows to refused tasks: what a run compares with is read strictly, recorded, and never trained on."""

import asyncio
import json
import random
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent0.assembly.runtime.port_openers import open_port
from agent0.errors import ConfigError
from agent0.evaluation.benchmarks import benchmarks, make_items
from agent0.evaluation.suite import made_suites
from agent0.events.base import Recorded, record, sha256
from agent0.events.benchmarks import BenchmarksIndexed
from agent0.events.tasks import AttemptRequested, TaskAccepted, TaskRejected
from agent0.events.values import Task
from agent0.handlers import handlers
from agent0.infra.embeddings.benchmark_index import BenchmarkRows
from agent0.infra.embeddings.embedders import Ngram
from agent0.projections import Projector, tables
from agent0.projections.indexes import contamination
from agent0.run.lifecycle import evolve
from agent0.settings import CurriculumConfig, EvaluationConfig, Settings
from agent0.state.run_state import index_digest
from agent0.tasks.decontamination import ReferenceIndex
from tests.memory import MemoryArtifacts
from tests.play import finished, play
from tests.story import bodies
from tests.world import NOON, levels_of, own, ports, small, started

PLAN = CurriculumConfig(embedder="ngram", overlap_limit=0.8)
ROWS = Path(__file__).parents[2] / "shared" / "benchmarks"
needs_rows = pytest.mark.skipif(not ROWS.is_dir(), reason="the folder with the rows is not here")


def folder(path: Path, *questions: str) -> Path:
    """A folder with these questions as rows of one benchmark."""
    path.mkdir(exist_ok=True)
    rows = [{"id": f"gsm8k/test/{n}", "question": q, "answer": "18"} for n, q in enumerate(questions)]
    (path / "gsm8k_test.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return path


class Counting(Ngram):
    """Counts what it embeds."""

    def __init__(self) -> None:
        self.texts = 0

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.texts += len(texts)
        return await super().embed(texts)


def asked(question: str) -> Task:
    return Task(question=question, domain="math", family="open", level=1, canonical=question)


async def overlap(rows: BenchmarkRows, question: str) -> str:
    (vector,) = await Ngram().embed([question])
    return (await rows.overlaps([asked(question)], [vector], PLAN, Ngram()))[0]


# --- files --------------------------------------------------------------------------------------------------------


async def test_without_a_folder_nothing_is_compared(tmp_path: Path) -> None:
    rows = await open_port("contamination", Settings(home=tmp_path), MemoryArtifacts())
    embedder = Counting()
    assert await rows.facts(PLAN, embedder) is None
    assert await rows.overlaps([asked("What is 1 + 1?")], [[1.0]], PLAN, embedder) == [""]
    assert not embedder.texts and not list(tmp_path.iterdir())


async def test_what_is_compared_with_is_recorded_by_digest(tmp_path: Path) -> None:
    rows = BenchmarkRows(folder(tmp_path / "rows", "How many hens?", "How many geese?"), tmp_path)
    found = await rows.facts(PLAN, Ngram())
    digest = sha256((tmp_path / "rows" / "gsm8k_test.jsonl").read_bytes())
    assert found == BenchmarksIndexed(
        benchmarks=("gsm8k",), files={"gsm8k_test.jsonl": digest}, items=2, ngram=8, limit=0.8, embedder=Ngram.version
    )
    assert await overlap(rows, "How many geese?") == "gsm8k gsm8k/test/1: the whole of it"


async def test_a_question_in_nearly_the_same_words_is_found_by_its_embedding(tmp_path: Path) -> None:
    rows = BenchmarkRows(folder(tmp_path / "rows", "The quick grey hen lays seventeen speckled eggs"), tmp_path)
    assert "similarity 0." in await overlap(rows, "The quick gray hen lays seventeen speckled egg")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"id": "a", "question": "q", "answer": "1"}\nnonsense', "gsm8k_test.jsonl, line 2: no JSON"),
        ('{"id": "a", "question": "q"}', "line 1: no row of gsm8k. Field 'answer' is missing"),
        (None, "of no use"),
    ],
)
async def test_rows_that_are_none_are_told_at_once(tmp_path: Path, content: str | None, told: str) -> None:
    if content is not None:
        (tmp_path / "gsm8k_test.jsonl").write_text(content)
    settings = Settings.model_validate({"home": tmp_path / "home", "benchmarks": {"folder": tmp_path}})
    with pytest.raises(ConfigError, match=told):
        await open_port("contamination", settings, MemoryArtifacts())


async def test_items_are_embedded_once_for_all_processes(tmp_path: Path) -> None:
    held, embedder = folder(tmp_path / "rows", "How many hens?", "How many geese?"), Counting()

    async def process(embedder: Counting) -> str:
        rows = BenchmarkRows(held, tmp_path / "cache")
        await asyncio.gather(*(rows.facts(PLAN, embedder) for _ in range(3)))
        (vector,) = await Ngram().embed(["how many hens"])
        return (await rows.overlaps([asked("hens?")], [vector], PLAN, embedder))[0]

    first = await process(embedder)
    assert embedder.texts == 2 and "similarity" in first
    assert await process(embedder) == first and embedder.texts == 2, "the second process embeds nothing"
    (kept,) = (tmp_path / "cache").iterdir()
    for damage in (kept.read_bytes()[:40], b"", np.zeros((2, 3)).tobytes()):
        kept.write_bytes(damage)
        again = Counting()
        assert await process(again) == first and again.texts == 2, "what is damaged is made anew"
    other = Counting()
    folder(tmp_path / "rows", "How many hens?", "How many swans?")
    await process(other)
    assert other.texts == 2, "other rows have other vectors"


async def test_a_disk_that_takes_nothing_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    rows = BenchmarkRows(folder(tmp_path / "rows", "How many hens?"), tmp_path / "cache")
    assert await rows.facts(PLAN, Ngram()) is not None


# --- a run --------------------------------------------------------------------------------------------------------


@cache
def plain_run() -> list[Recorded]:
    return finished(play(started(small()), ports()))


@cache
def planted() -> str:
    return next(r.event.proposal.question for r in plain_run() if isinstance(r.event, TaskAccepted))


def told_with(rows: BenchmarkRows) -> list[Recorded]:
    return finished(play(started(small()), {**ports(), "contamination": rows}))


def test_an_offender_is_refused_and_reaches_nobody(tmp_path: Path) -> None:
    told = told_with(BenchmarkRows(folder(tmp_path / "rows", planted(), "How many hens?"), tmp_path))
    (refused,) = [r.event for r in told if isinstance(r.event, TaskRejected) and r.event.reason == "contaminated"]
    assert refused.detail.startswith("gsm8k gsm8k/test/0: ")
    asked_of = {r.event.task for r in told if isinstance(r.event, AttemptRequested)}
    assert refused.task not in asked_of and asked_of
    assert planted() not in [r.event.proposal.question for r in told if isinstance(r.event, TaskAccepted)]
    indexed = [r for r in told if isinstance(r.event, BenchmarksIndexed)]
    assert len(indexed) == 1 and indexed[0].handler == "screen_task"
    assert indexed[0].seq < min(r.seq for r in told if isinstance(r.event, TaskAccepted))
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        Projector(Path("memory"), lambda _: db, tables(), "stream").apply(bodies(told))
        found = contamination(db, "r1")
    assert (found["screened"], found["contaminated"]) == (12, 1)
    assert found["benchmarks"] == [{"benchmark": "gsm8k", "tasks": 1}]
    assert found["examples"] == [{"task": refused.task, "question": planted(), "detail": refused.detail}]
    assert (found["index"]["items"], found["index"]["changes"]) == (2, 1)


def test_a_run_without_a_folder_says_so() -> None:
    assert not [r for r in plain_run() if isinstance(r.event, BenchmarksIndexed)]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        Projector(Path("memory"), lambda _: db, tables(), "stream").apply(bodies(plain_run()))
        assert contamination(db, "r1") == {
            "index": None, "screened": 12, "contaminated": 0, "benchmarks": [], "examples": []
        }  # fmt: skip


async def test_what_is_compared_with_is_told_whenever_it_changes(tmp_path: Path) -> None:
    """Once for a whole run, unless the folder changes, or is gone when the run goes on elsewhere."""
    place = next(n for n, r in enumerate(plain_run()) if isinstance(r.event, TaskAccepted)) - 1
    cause = next(r for r in plain_run() if r.id == plain_run()[place + 1].cause)
    state = None
    for recorded in plain_run()[: cause.seq]:
        state = evolve(state, recorded)
    assert state is not None

    async def first(rows: BenchmarkRows, indexed: str) -> Any:
        run = replace(state, indexed=indexed)
        told = await handlers()["screen_task"](cause, run, {**ports(), "history": None, "contamination": rows})
        return told[0]

    rows = BenchmarkRows(folder(tmp_path / "rows", "How many hens?"), tmp_path)
    index = await first(rows, "")
    assert isinstance(index, BenchmarksIndexed) and index.benchmarks == ("gsm8k",)
    after = evolve(state, record(index, run="r1", time=NOON).model_copy(update={"seq": state.seq + 1}))
    assert after is not None and after.indexed == index_digest(index) != "" and after.digest != state.digest
    assert not isinstance(await first(rows, after.indexed), BenchmarksIndexed)
    other = BenchmarkRows(folder(tmp_path / "rows", "How many swans?"), tmp_path)
    assert isinstance(await first(other, after.indexed), BenchmarksIndexed)
    gone = await first(BenchmarkRows(None, tmp_path), after.indexed)
    assert isinstance(gone, BenchmarksIndexed) and (gone.benchmarks, gone.items) == ((), 0)
    assert index_digest(gone) == ""
    assert not isinstance(await first(BenchmarkRows(None, tmp_path), ""), BenchmarksIndexed)


# --- real rows ----------------------------------------------------------------------------------------------------


@needs_rows
def test_a_function_is_found_by_its_bare_question(tmp_path: Path) -> None:
    """Without our own words, tests, signature and examples; all rows, as they stand in the files."""
    references = [
        reference
        for reference in BenchmarkRows(ROWS, tmp_path).references
        if reference.benchmark in ("mbpp", "humaneval")
    ]
    index = ReferenceIndex(references, np.zeros((0, 1), dtype=np.float32), 8)
    prompts = [json.loads(line)["prompt"] for line in (ROWS / "mbpp_sanitized.jsonl").read_text().splitlines()]
    docs = [json.loads(line)["prompt"] for line in (ROWS / "humaneval.jsonl").read_text().splitlines()]
    bare = [re.split("\"\"\"|'''", text)[-2].split(">>>")[0] for text in docs]
    assert (len(prompts), len(bare)) == (427, 164)
    assert [text for text in (*prompts, *docs, *bare) if not index.overlap(asked(text), [0.0], 0.95)] == []


@needs_rows
def test_real_items_are_found_and_our_own_tasks_pass(tmp_path: Path) -> None:
    """Without embeddings, which know no exact words."""
    references = BenchmarkRows(ROWS, tmp_path).references
    index = ReferenceIndex(references, np.zeros((0, 1), dtype=np.float32), 8)
    rng = random.Random(1)
    drawn = rng.sample(references, 150)
    inside = [bool(index.overlap(asked(f"Tell me. {one.stems[-1]} Thanks."), [0.0], 0.95)) for one in drawn]
    assert sum(inside) >= 147, "but for the shortest"
    for one in drawn:
        for stem in one.stems:
            assert index.overlap(asked(stem), [0.0], 0.95), one.item
    for name, family in own().items():
        for level in levels_of(family):
            for _ in range(5):
                question = family.render(family.sample(level, rng), rng)
                task = asked(question).model_copy(update={"family": name})
                assert index.overlap(task, [0.0], 0.95) == "", question


# --- suites made from a seed ----------------------------------------------------------------------------------------


async def test_suites_that_a_run_makes_are_compared_with_too(tmp_path: Path) -> None:
    """With a folder and without one, with the seed that the run scores, and known by digest."""
    made = made_suites(EvaluationConfig(benchmarks=("tool_scenarios", "heldout_math"), benchmark_items=6, seed=11))
    assert made == (("tool_scenarios", 6, 11),), "the split rule keeps our own held-out tasks"
    items, digest = make_items(benchmarks()["tool_scenarios"], 6, 11)
    others, _ = make_items(benchmarks()["tool_scenarios"], 6, 12)
    for rows in (BenchmarkRows(None, tmp_path), BenchmarkRows(folder(tmp_path / "rows", "How many hens?"), tmp_path)):
        found = await rows.facts(PLAN, Ngram(), made)
        assert found and found.items == len(rows.references) + 6
        assert found.files["tool_scenarios from seed 11"] == digest
        for item in items:
            (vector,) = await Ngram().embed([item.question])
            (why,) = await rows.overlaps([asked(item.question)], [vector], PLAN, Ngram(), made)
            assert why.startswith("tool_scenarios "), item.question
        bare = [asked(item.question) for item in others if item.question not in {one.question for one in items}]
        assert await rows.overlaps(bare, await Ngram().embed([one.question for one in bare]), PLAN, Ngram()) == [
            ""
        ] * len(bare)
