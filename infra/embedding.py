"""Embedders: MiniLM in a process of its own, and hashed character n-grams where no model is wanted."""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from agent0.errors import TransientError
from infra.embedding_worker import WEIGHTS
from infra.models.engine_worker import Worker

DIMENSIONS = 256
"""Of n-gram vectors."""


class MiniLM:
    """all-MiniLM-L6-v2 with FAISS, offline. The process starts at the first call and again where it died."""

    version = f"minilm-{WEIGHTS[:12]}"

    def __init__(self, folder: str = "", sha256: str = WEIGHTS) -> None:
        self._worker = Worker("infra.embedding_worker:Encoder", {"folder": folder, "sha256": sha256})

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

    async def nearest(self, queries: Sequence[Sequence[float]], archive: Sequence[Sequence[float]]) -> list[float]:
        """Highest cosine similarity of each query to ``archive`` (0.0 where it is empty), by an exact FAISS index."""
        if not queries or not archive:
            return [0.0] * len(queries)
        best: list[float] = await self._call("nearest", [list(q) for q in queries], [list(a) for a in archive])
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

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of 256 a text."""
        return [_hashed(text) for text in texts]

    async def nearest(self, queries: Sequence[Sequence[float]], archive: Sequence[Sequence[float]]) -> list[float]:
        """Highest cosine similarity of each query to ``archive`` (0.0 where it is empty)."""
        if not queries or not archive:
            return [0.0] * len(queries)
        return [float(best) for best in (np.asarray(queries) @ np.asarray(archive).T).max(axis=1)]

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
