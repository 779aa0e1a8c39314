"""Both embedders keep one contract; MiniLM is the pinned model, offline, in a process that may die."""

import asyncio
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.errors import DependencyError
from agent0.infra.embeddings.embedders import MiniLM, Ngram
from agent0.infra.embeddings.worker import WEIGHTS, check, packaged
from agent0.ports.models import Embedder

TEXTS = ["What is 12+30?", "Compute 12+30.", "How many vowels does 'banana' have?", "", "Grüße 🙂"]


@pytest.fixture(scope="module")
def minilm() -> Iterator[MiniLM]:
    embedder = MiniLM()
    yield embedder
    asyncio.run(embedder.close())


@pytest.mark.slow  # part of make crash
async def test_a_killed_process_is_started_again(minilm: MiniLM) -> None:
    """Before all others: while it loads, which is where a killed one costs least."""
    asked = asyncio.create_task(minilm.embed(TEXTS[:1]))
    while not (killed := minilm.pid):
        await asyncio.sleep(0)
    os.kill(killed, signal.SIGKILL)
    assert [len(vector) for vector in await asked] == [384]
    assert minilm.pid not in (None, killed)


@pytest.fixture(params=[pytest.param("minilm", marks=pytest.mark.slow), "ngram"])  # the slow ones: make crash
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return request.getfixturevalue("minilm") if request.param == "minilm" else Ngram()


async def test_unit_vectors_that_depend_on_the_text_alone(embedder: Embedder) -> None:
    vectors = await embedder.embed(TEXTS)
    assert [math.sqrt(sum(x * x for x in v)) for v in vectors] == pytest.approx([1.0] * len(TEXTS), abs=1e-4)
    backwards = await embedder.embed(TEXTS[::-1])
    for vector, again in zip(vectors, backwards[::-1], strict=True):
        assert vector == pytest.approx(again, abs=1e-5)


async def test_alike_is_nearer_than_unlike(embedder: Embedder) -> None:
    one, reworded, other, *_ = np.asarray(await embedder.embed(TEXTS))
    assert one @ reworded > one @ other + 0.1


def unit(count: int, seed: int, length: int = 256) -> np.ndarray:
    held = np.random.default_rng(seed).normal(size=(count, length))
    return held / np.linalg.norm(held, axis=1, keepdims=True)


async def test_what_is_found_is_the_highest_similarity_to_all_that_was_added(embedder: Embedder) -> None:
    archive, queries = unit(300, 0), unit(7, 1)
    assert await embedder.search("a", 0, archive[:100].tolist(), []) == []
    assert await embedder.search("other", 0, archive[:1].tolist(), []) == []
    found = await embedder.search("a", 100, archive[100:].tolist(), queries.tolist())
    assert found == pytest.approx((queries @ archive.T).max(axis=1).tolist(), abs=1e-5)
    assert await embedder.search("a", 300, [], queries.tolist()) == found
    again = await embedder.search("a", 0, archive.tolist(), queries.tolist())
    assert again == pytest.approx(found, abs=1e-6)


async def test_nothing_asked_and_nothing_to_compare_with(embedder: Embedder) -> None:
    assert await embedder.embed([]) == []
    assert await embedder.search("b", 0, unit(1, 0).tolist(), []) == []
    assert await embedder.search("b", 0, [], unit(2, 0).tolist()) == [0.0, 0.0]
    assert await embedder.search("b", 0, [], []) == []


async def test_what_is_no_longer_kept_is_said(embedder: Embedder) -> None:
    await embedder.search("c", 0, unit(3, 0).tolist(), [])
    assert await embedder.search("c", 2, unit(1, 1).tolist(), unit(1, 2).tolist()) is None
    assert await embedder.search("never", 5, [], unit(1, 2).tolist()) is None
    for name in "defg":
        await embedder.search(name, 0, unit(1, 0).tolist(), [])
    assert await embedder.search("d", 1, [], []) == [] and await embedder.search("c", 3, [], []) is None


def test_heavy_libraries_stay_out_of_this_process() -> None:
    code = (
        "import sys, infra.embeddings.embedders; print({'torch', 'faiss', 'sentence_transformers'} & set(sys.modules))"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.strip() == "set()"


def test_altered_or_missing_weights_are_refused(tmp_path: Path) -> None:
    check(packaged(), WEIGHTS)
    with pytest.raises(DependencyError, match=r"There is no .*model\.safetensors"):
        check(tmp_path, WEIGHTS)
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(DependencyError, match="sha256"):
        check(tmp_path, WEIGHTS)


async def test_the_process_tells_why_it_cannot_load(tmp_path: Path) -> None:
    embedder = MiniLM(str(tmp_path))
    with pytest.raises(DependencyError, match=r"There is no .*ngram"):
        await embedder.embed(["x"])
    await embedder.close()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(), max_size=4))
def test_any_text_has_an_ngram_vector(texts: list[str]) -> None:
    vectors = asyncio.run(Ngram().embed(texts))
    assert [len(v) for v in vectors] == [256] * len(texts)
    assert all(sum(x * x for x in v) == pytest.approx(1.0, abs=1e-3) for v in vectors)


def test_versions_name_the_model_and_its_digest() -> None:
    assert MiniLM().version == f"minilm-{WEIGHTS[:12]}"
    assert Ngram().version == "ngram-256-1"
