"""What was accepted before is looked up without reading all of it again, and always as if it had been."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import faiss
import numpy as np
import pytest

from agent0.events.base import Recorded, record
from agent0.events.tasks import TaskAccepted
from agent0.events.values import Task
from agent0.infra.embeddings import vector_index
from agent0.infra.embeddings.embedders import Ngram
from agent0.infra.embeddings.vector_index import EXACT, VectorIndex
from agent0.settings import RunConfig
from agent0.state.run_state import RunState
from agent0.tasks.novelty_archive import KEPT, RunArchives, archive_of
from agent0.tasks.screening import Archive
from tests.world import NOON


class Log:
    """A history that counts what it tells."""

    def __init__(self) -> None:
        self.told: list[Recorded] = []
        self.read_events = 0

    def accept(self, run: str, name: str, embedder: Ngram, version: str = "") -> None:
        task = Task(question=name, domain="math", family="f", level=1, canonical=name)
        vector = tuple(asyncio.run(embedder.embed([name]))[0])
        event = TaskAccepted(
            task="t0-000",
            iteration=0,
            slot=0,
            proposal=task,
            novelty=1.0,
            against=0,
            position=0,
            embedder=version or embedder.version,
            embedding=vector,
        )
        told = record(event, run=run, time=NOON).model_copy(update={"seq": len(self.told) + 1})
        self.told.append(told)

    async def read(
        self, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0
    ) -> AsyncIterator[Recorded]:
        for one in self.told[after : until or None]:
            if one.run == run:
                self.read_events += 1
                yield one


def looked(log: Log, embedder: Any, position: int, questions: Sequence[str], run: str = "r") -> Archive:
    state = RunState(run, position, RunConfig(), "", iteration=1, starts=(0, position))
    known = {f"t{n}": Task(question=q, domain="m", family="f", level=1, canonical=q) for n, q in enumerate(questions)}
    vectors = dict(zip(known, asyncio.run(embedder.embed(list(questions))), strict=True))
    return asyncio.run(archive_of(state, log, embedder, known, vectors))


ASKED = ["what is 1+2?", "sort the words pear and fig", "task 7"]


def grown(count: int, embedder: Ngram) -> Log:
    log = Log()
    for n in range(count):
        log.accept("r", f"task {n}", embedder)
        log.accept("other", f"else {n}", embedder)
    return log


def test_each_batch_reads_only_what_is_new_and_finds_what_reading_all_finds() -> None:
    embedder, log = Ngram(), grown(40, Ngram())
    for position in (10, 10, 30, 80):
        before = log.read_events
        found = looked(log, embedder, position, ASKED)
        assert found == looked(log, Ngram(), position, ASKED)
        assert found.size == position // 2 and found.canonicals == ({"task 7"} if position > 14 else frozenset())
        fresh = position // 2
        assert log.read_events - before <= 2 * fresh + 1
    before = log.read_events
    looked(log, embedder, 80, ASKED)
    assert log.read_events - before == 1


def test_an_earlier_position_is_looked_at_as_it_was() -> None:
    embedder, log = Ngram(), grown(20, Ngram())
    late = looked(log, embedder, 40, ASKED)
    assert looked(log, embedder, 8, ASKED) == looked(log, Ngram(), 8, ASKED) != late
    assert looked(log, embedder, 40, ASKED) == late


def test_a_process_that_lost_its_vectors_reads_them_again() -> None:
    embedder, log = Ngram(), grown(20, Ngram())
    first = looked(log, embedder, 20, ASKED)
    embedder._held.clear()
    assert looked(log, embedder, 20, ASKED) == first
    assert looked(log, embedder, 40, ASKED) == looked(log, Ngram(), 40, ASKED)


def test_a_log_that_is_another_one_is_noticed() -> None:
    embedder = Ngram()
    looked(grown(20, Ngram()), embedder, 20, ASKED)
    other = Log()
    for n in range(20):
        other.accept("r", f"{n} other words", embedder)
    assert looked(other, embedder, 20, ASKED) == looked(other, Ngram(), 20, ASKED)


def test_what_another_embedder_measured_counts_by_identity_alone() -> None:
    log = Log()
    log.accept("r", "task 7", Ngram(), version="another")
    log.accept("r", "task 8", Ngram())
    found = looked(log, Ngram(), 2, ASKED)
    assert (found.size, found.canonicals) == (1, {"task 7"})


def test_a_first_iteration_has_nothing_before_it_and_few_runs_are_kept() -> None:
    state = RunState("r", 5, RunConfig(), "", iteration=0, starts=(3,))
    assert asyncio.run(archive_of(state, Log(), Ngram(), {}, {})) == Archive(position=3)
    shelves = RunArchives()
    first = shelves.of("r0")
    assert shelves.of("r0") is first
    for n in range(1, KEPT + 1):
        shelves.of(f"r{n}")
    assert shelves.of("r0") is not first


def unit(count: int, seed: int) -> np.ndarray:
    """Vectors in clusters, as questions of families are."""
    rng = np.random.default_rng(seed)
    middles = np.random.default_rng(0).normal(size=(60, 64))
    held = middles[rng.integers(0, 60, count)] + 0.4 * rng.normal(size=(count, 64))
    return (held / np.linalg.norm(held, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Enough for lists to be made twice, which they are earlier here than elsewhere."""
    faiss.omp_set_num_threads(1)
    monkeypatch.setattr(vector_index, "EXACT", 1024)
    return unit(2600, 1)


def test_beyond_the_scan_most_of_the_nearest_are_still_found(large: np.ndarray) -> None:
    index = VectorIndex(64)
    index.add(large)
    queries = unit(200, 2)
    best = (queries @ large.T).max(axis=1)
    found = np.asarray(index.nearest(queries))
    assert (found <= best + 1e-5).all() and (found >= best - 1e-5).mean() >= 0.95
    own = np.asarray(index.nearest(large[::50]))
    assert (own > 1 - 1e-4).mean() >= 0.98


def test_what_is_found_does_not_depend_on_how_the_vectors_came_in(large: np.ndarray) -> None:
    whole, parts, queries = VectorIndex(64), VectorIndex(64), unit(50, 3)
    whole.add(large)
    for start in range(0, len(large), 300):
        parts.add(large[start : start + 300])
    assert parts.size == whole.size == len(large)
    assert parts.nearest(queries) == whole.nearest(queries)
    assert [found for n in range(50) for found in parts.nearest(queries[n : n + 1])] == whole.nearest(queries)


def test_few_vectors_are_scanned_exactly() -> None:
    index, held, queries = VectorIndex(64), unit(EXACT - 1, 4), unit(20, 5)
    assert index.nearest(queries[:2]) == [0.0, 0.0]
    index.add(held)
    found = index.nearest(queries)
    assert found == pytest.approx((queries @ held.T).max(axis=1).tolist(), abs=1e-6)
    assert [one for n in range(20) for one in index.nearest(queries[n : n + 1])] == found
