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
from agent0.ports import Embedder
from infra.embedding import MiniLM, Ngram
from infra.embedding_worker import WEIGHTS, check, packaged

TEXTS = ["What is 12+30?", "Compute 12+30.", "How many vowels does 'banana' have?", "", "Grüße 🙂"]


@pytest.fixture(scope="module")
def minilm() -> Iterator[MiniLM]:
    embedder = MiniLM()
    yield embedder
    asyncio.run(embedder.close())


@pytest.fixture(params=["minilm", "ngram"])
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


async def test_nearest_is_the_highest_similarity(embedder: Embedder) -> None:
    rng = np.random.default_rng(0)
    archive, queries = rng.normal(size=(300, 32)), rng.normal(size=(7, 32))
    archive /= np.linalg.norm(archive, axis=1, keepdims=True)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    found = await embedder.nearest(queries.tolist(), archive.tolist())
    assert found == pytest.approx((queries @ archive.T).max(axis=1).tolist(), abs=1e-5)


async def test_nothing_asked_and_nothing_to_compare_with(embedder: Embedder) -> None:
    assert await embedder.embed([]) == []
    assert await embedder.nearest([], [[1.0, 0.0]]) == []
    assert await embedder.nearest([[1.0, 0.0], [0.0, 1.0]], []) == [0.0, 0.0]


async def test_a_killed_process_is_started_again(minilm: MiniLM) -> None:
    before = await minilm.embed(TEXTS[:1])
    killed = minilm.pid
    assert killed
    os.kill(killed, signal.SIGKILL)
    assert await minilm.embed(TEXTS[:1]) == before
    assert minilm.pid not in (None, killed)


def test_heavy_libraries_stay_out_of_this_process() -> None:
    code = "import sys, infra.embedding; print({'torch', 'faiss', 'sentence_transformers'} & set(sys.modules))"
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
