"""Which kept vector is nearest: a scan of all while they are few, and beyond that a look-up whose cost hardly grows.

Vectors lie in lists around means of some of them (k-means); the lists nearest to a query are scanned in 8-bit codes,
and the best of these compared exactly. What is found depends on the vectors and their order alone, however they were
added: means and codes are made anew whenever the number of vectors has doubled, from vectors at fixed places.
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
A_LIST = 32
"""Vectors of a list when lists are made; twice as many when they are made anew."""
PROBES, CANDIDATES = 10, 20
"""Lists that are scanned, and candidates for these."""
COMPARED = 8
"""Vectors that are compared exactly."""
_ROUNDS, _TO_A_MEAN = 2, 16
_NEIGHBOURS, _CONSTRUCTION = 32, 60
_RANGES = 4096
_EIGHT_BITS, _INNER, _RESIDUAL = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT, False


class VectorIndex:
    """Unit vectors of one length, added in order and never taken away."""

    def __init__(self, dimensions: int) -> None:
        self._held = faiss.IndexFlatIP(dimensions)
        self._vectors: Vectors = np.empty((0, dimensions), np.float32)
        self._lists: Any = None
        self._made_at = 0

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._vectors)

    def add(self, vectors: Vectors) -> None:
        """Shape (n, dimensions)."""
        (self._lists or self._held).add(np.ascontiguousarray(vectors, np.float32))
        size, dimensions = self._held.ntotal, self._held.d
        self._vectors = faiss.rev_swig_ptr(self._held.get_xb(), size * dimensions).reshape(size, dimensions)
        size_of_index = EXACT << max(0, (size // EXACT).bit_length() - 1)
        if size >= EXACT and size_of_index != self._made_at:
            self._make(size_of_index)

    def nearest(self, queries: Vectors) -> list[float]:
        """The highest inner product of each, 0.0 where nothing is held."""
        if self._lists is not None:
            products: list[float] = self._lists.search(queries, 1)[0][:, 0].tolist()
            return products
        if not self.size:
            return [0.0] * len(queries)
        # one at a time, since products of a batch are rounded otherwise
        return [float((self._vectors @ query).max()) for query in np.ascontiguousarray(queries, np.float32)]

    def _make(self, count: int) -> None:
        """Lists around means of the first ``count``, then everything into them."""
        self._lists = None
        gc.collect()  # the old lists go before the new ones come
        first, dimensions, lists_count = self._vectors[:count], self._held.d, count // A_LIST
        ranges = np.ascontiguousarray(first[:: max(1, count // _RANGES)])
        means = faiss.IndexHNSWSQ(dimensions, _EIGHT_BITS, _NEIGHBOURS, _INNER)
        means.hnsw.efConstruction, means.hnsw.efSearch = _CONSTRUCTION, CANDIDATES
        means.train(ranges)
        clustering = faiss.Clustering(dimensions, lists_count)
        clustering.niter, clustering.spherical, clustering.min_points_per_centroid = _ROUNDS, True, 1
        clustering.train(np.ascontiguousarray(first[:: A_LIST // _TO_A_MEAN]), means)
        lists = faiss.IndexIVFScalarQuantizer(means, dimensions, lists_count, _EIGHT_BITS, _INNER, _RESIDUAL)
        lists.nprobe = PROBES
        lists.train(ranges)
        lists.add(self._vectors)
        self._lists, self._made_at = faiss.IndexRefine(lists, self._held), count
        self._lists.k_factor = COMPARED
