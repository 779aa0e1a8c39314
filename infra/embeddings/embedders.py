"""Embedders: MiniLM in a process of its own, or hashed character n-grams where no model is to be loaded."""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from agent0.errors import TransientError
from agent0.infra.embeddings.worker import WEIGHTS
from agent0.infra.engine.worker_process import Worker
from agent0.tasks.novelty_archive import KEPT, RunArchives

DIMENSIONS = 256
"""Of n-gram vectors."""


class MiniLM:
    """all-MiniLM-L6-v2 with FAISS, offline. The process starts at the first call and again where it died."""

    version = f"minilm-{WEIGHTS[:12]}"

    def __init__(self, folder: str = "") -> None:
        self.archives = RunArchives()
        target = "agent0.infra.embeddings.worker:EmbeddingEncoder"
        self._worker = Worker(target, {"folder": folder}, without=("bitsandbytes",))

    @property
    def pid(self) -> int | None:
        """The process, None where none runs."""
        return self._worker.pid

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of 384 a text.

        Raises:
            DependencyError: the model is not installed, or its weights are not the pinned ones.
            TransientError: its process died twice.
        """
        vectors: list[list[float]] = await self._call("embed", list(texts)) if texts else []
        return vectors

    async def search(
        self, archive: str, size: int, fresh: Sequence[Sequence[float]], queries: Sequence[Sequence[float]]
    ) -> list[float] | None:
        """As ``Embedder.search``: exact while there are few, by FAISS beyond (``infra/embeddings/vector_index.py``)."""
        arrays = [np.asarray(part, np.float32) for part in (fresh, queries)]
        best: list[float] | None = await self._call("search", archive, size, *arrays)
        return best

    async def close(self) -> None:
        """End the process."""
        await self._worker.close()

    async def _call(self, method: str, *arguments: object) -> Any:
        try:
            return await self._worker.call(method, *arguments)
        except TransientError:
            return await self._worker.call(method, *arguments)


class Ngram:
    """Character n-grams of length 2 to 4, hashed with a sign into 256 dimensions: wording, not meaning."""

    version = f"ngram-{DIMENSIONS}-1"

    def __init__(self) -> None:
        self.archives = RunArchives()
        self._held: dict[str, np.ndarray] = {}

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of 256 a text."""
        return [_hashed(text) for text in texts]

    async def search(
        self, archive: str, size: int, fresh: Sequence[Sequence[float]], queries: Sequence[Sequence[float]]
    ) -> list[float] | None:
        """As ``Embedder.search``, exactly."""
        vectors = self._held.pop(archive, np.empty((0, DIMENSIONS))) if size else np.empty((0, DIMENSIONS))
        if len(vectors) != size:
            return None
        vectors = np.concatenate([vectors, np.asarray(fresh).reshape(-1, DIMENSIONS)])
        self._held[archive] = vectors
        while len(self._held) > KEPT:
            del self._held[next(iter(self._held))]
        if not len(vectors):
            return [0.0] * len(queries)
        return [float((vectors @ np.asarray(query)).max()) for query in queries]

    async def close(self) -> None:
        """There is nothing to give back."""


def _hashed(text: str) -> list[float]:
    vector = np.zeros(DIMENSIONS)
    data = f"\x02{text.casefold()}\x03".encode(errors="replace")
    for size in (2, 3, 4):
        for start in range(len(data) - size + 1):
            code = zlib.crc32(data[start : start + size])
            vector[code % DIMENSIONS] += 1 if code & 0x80000000 else -1
    length = float(np.linalg.norm(vector))
    if not length:
        vector[0] = length = 1.0
    return [round(float(x), 6) for x in vector / length]
