"""Which kept vector is nearest: a scan of all while they are few, and beyond that a look-up whose cost hardly grows.

Vectors lie in lists around some of them; the lists nearest to a query are scanned in 8-bit codes, and the best of these
compared exactly. What is found depends on the vectors and their order alone, however they were added: centres and codes
are made anew whenever the number of vectors has doubled, from vectors at fixed places.
"""

import gc
from typing import Any

import faiss as _faiss
import numpy as np
import numpy.typing as npt

faiss: Any = _faiss
Vectors = npt.NDArray[np.float32]

EXACT = 4096
"""Fewer vectors are scanned."""
A_LIST = 64
"""Vectors of a list when lists are made; twice as many when they are made anew."""
PROBES, CENTRES = 28, 48
"""Lists that are scanned, and candidates for these."""
COMPARED = 8
"""Vectors that are compared exactly."""
_NEIGHBOURS, _CONSTRUCTION = 16, 60
_SAMPLE = 4096


class Index:
    """Unit vectors of one length, added in order and never taken away."""

    def __init__(self, dimensions: int) -> None:
        self._held: Vectors = np.empty((0, dimensions), np.float32)
        self._size = 0
        self._made_at = 0
        self._lists: Any = None
        self._centres: Any = None

    @property
    def size(self) -> int:
        """How many there are."""
        return self._size

    def add(self, vectors: Vectors) -> None:
        """Shape (n, dimensions)."""
        size = self._size + len(vectors)
        if size > len(self._held):
            held = np.empty((max(size, 2 * len(self._held)), self._held.shape[1]), np.float32)
            held[: self._size] = self._held[: self._size]
            self._held = held
        self._held[self._size : size] = vectors
        before, self._size = self._size, size
        wanted = EXACT << max(0, (size // EXACT).bit_length() - 1)
        if size >= EXACT and wanted != self._made_at:
            self._make(wanted)
        elif self._lists is not None:
            self._lists.add(self._held[before:size])

    def nearest(self, queries: Vectors) -> list[float]:
        """The highest inner product of each, 0.0 where nothing is held."""
        if not self._size:
            return [0.0] * len(queries)
        return [self._nearest(query) for query in np.ascontiguousarray(queries, np.float32)]

    def _nearest(self, query: Vectors) -> float:
        if self._lists is None:
            return float((self._held[: self._size] @ query).max())
        _, places = self._lists.search(query[None], COMPARED)
        found = places[0][places[0] >= 0]
        return float((self._held[found] @ query).max())

    def _make(self, count: int) -> None:
        """Lists around every so many of the first ``count``, then everything into them."""
        self._lists = self._centres = None
        gc.collect()  # the old lists go before the new ones come
        dimensions = self._held.shape[1]
        first = self._held[:count]
        sample = np.ascontiguousarray(first[:: max(1, count // _SAMPLE)])
        centres = faiss.IndexHNSWSQ(dimensions, faiss.ScalarQuantizer.QT_8bit, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        centres.train(sample)
        centres.hnsw.efConstruction, centres.hnsw.efSearch = _CONSTRUCTION, CENTRES
        around = np.ascontiguousarray(first[::A_LIST])
        centres.add(around)
        codes, residual = faiss.ScalarQuantizer.QT_8bit, False
        lists = faiss.IndexIVFScalarQuantizer(
            centres, dimensions, len(around), codes, faiss.METRIC_INNER_PRODUCT, residual
        )
        lists.nprobe = PROBES
        lists.train(sample)
        lists.add(self._held[: self._size])
        self._centres, self._lists, self._made_at = centres, lists, count
