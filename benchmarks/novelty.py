"""What it costs to ask which archived question is nearest, as the archive grows to a million.

Archived vectors are real embeddings (packaged MiniLM) of questions of all families, each many times with noise of a
fixed length added in a random direction and brought back to unit length; queries are embeddings of other questions of
the same families with as much noise. One query a call, in the process that holds the index, one thread: the look-up
alone. ``cold``: between look-ups 64 MiB of other memory are written, since a run asks once in minutes and finds nothing
of the index in the processor's caches; ``warm``: one look-up straight after the other. An index of each size is built
first; then all are asked in turn. Recall is the share of queries whose similarity is that of an exact search (within
1e-5).

Aims: the cold median at the largest size at most twice that at the smallest; recall at least 0.95 at every size.
"""

import argparse
import json
import random
import resource
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import faiss
import numpy as np

from agent0.infra.embeddings.vector_index import VectorIndex, Vectors
from agent0.infra.embeddings.worker import EmbeddingEncoder
from agent0.tasks.families import families

SIZES = (1_000, 10_000, 100_000, 1_000_000)
GROWTH, RECALL = 2.0, 0.95
PART = 20_000
SAID = (
    "{vectors:>9,} vectors  cold {cold_us:6.1f} us (p95 {cold_p95_us:.1f})  warm {warm_us:6.1f} us  "
    "recall@1 {recall:.3f}  built in {build_cpu_s:.1f} s of CPU  peak {peak_gib:.2f} GiB"
)


def questions(count: int, seed: int) -> list[str]:
    """Of all families, alike in number, levels mixed."""
    rng, entries = random.Random(seed), list(families().values())
    drawn = [entries[n % len(entries)] for n in range(count)]
    return [one.render(one.sample(rng.randint(1, one.levels), rng), rng) for one in drawn]


def embedded(count: int, asked: int, cache: Path | None) -> tuple[Vectors, Vectors]:
    """Real vectors for the archive, and others to ask with."""
    if cache and cache.exists():
        held = np.load(cache)
        if len(held) >= count + asked:
            return held[:count], held[count : count + asked]
    texts = list(dict.fromkeys(questions(2 * (count + asked), 7)))[: count + asked]
    vectors = np.asarray(EmbeddingEncoder().embed(texts), np.float32)
    if cache:
        np.save(cache, vectors)
    return vectors[:count], vectors[count:]


def noisy(vectors: Vectors, length: float, rng: np.random.Generator) -> Vectors:
    """Unit vectors beside ``vectors``."""
    noise = rng.standard_normal(vectors.shape, dtype=np.float32)
    moved = vectors + noise * (length / np.sqrt(vectors.shape[1]))
    return (moved / np.linalg.norm(moved, axis=1, keepdims=True)).astype(np.float32)


def exact(queries: Vectors, archive: list[Vectors], size: int) -> Vectors:
    """The highest similarity of each query to the first ``size`` vectors."""
    best: Vectors = np.full(len(queries), -2, np.float32)
    for begun, part in enumerate(archive):
        rest = part[: max(0, size - begun * PART)]
        best = np.maximum(best, (queries @ rest.T).max(axis=1, initial=-2))
    return best


def built(size: int, archive: list[Vectors]) -> tuple[VectorIndex, dict[str, Any]]:
    """An index of the first ``size`` vectors, and what it cost; memory is this process's, smaller indexes included."""
    index, begun = VectorIndex(archive[0].shape[1]), time.process_time()
    for part in archive:
        if size > index.size:
            index.add(part[: size - index.size])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return index, {"vectors": size, "build_cpu_s": time.process_time() - begun, "peak_gib": peak}


def asked_once(index: VectorIndex, query: Vectors) -> tuple[float, float]:
    """(microseconds, what was found)."""
    begun = time.perf_counter()
    found = index.nearest(query)
    return (time.perf_counter() - begun) * 1e6, found[0]


def measure(sizes: list[int], real: Vectors, asked: Vectors, length: float, rounds: int) -> list[dict[str, Any]]:
    """One row a size; all sizes are asked in turn, so that a machine that slows down slows them alike."""
    rng = np.random.default_rng(1)
    archive = [noisy(real[rng.integers(0, len(real), PART)], length, rng) for _ in range(-(-max(sizes) // PART))]
    queries = noisy(asked, length, np.random.default_rng(2))
    each = [queries[place : place + 1] for place in range(len(queries))]
    made = [built(size, archive) for size in sizes]
    other = np.zeros(8 << 20)
    cold: list[list[tuple[float, float]]] = [[] for _ in made]
    for query in each * rounds:
        for (index, _), answers in zip(made, cold, strict=True):
            other += 1
            answers.append(asked_once(index, query))
    for (index, row), answers in zip(made, cold, strict=True):
        took = [microseconds for microseconds, _ in answers]
        best = exact(queries, archive, row["vectors"])
        row |= {"cold_us": median(took), "cold_p95_us": sorted(took)[int(0.95 * len(took))]}
        row["warm_us"] = median(asked_once(index, query)[0] for query in each * rounds)
        row["recall"] = float(np.mean([found for _, found in answers[: len(each)]] >= best - 1e-5))
        print(SAID.format(**row), file=sys.stderr, flush=True)
    return [row for _, row in made]


def main() -> int:
    """Exit code 1 where an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=list(SIZES))
    parser.add_argument("--real", type=int, default=5000, help="distinct real questions")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--noise", type=float, default=0.3, help="length of the noise; vectors have 1")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=None, help=".npy file that keeps the real embeddings")
    given = parser.parse_args()
    faiss.omp_set_num_threads(1)
    real, asked = embedded(given.real, given.queries, given.cache)
    rows = measure(given.sizes, real, asked, given.noise, given.rounds)
    growth = rows[-1]["cold_us"] / rows[0]["cold_us"]
    lowest = min(row["recall"] for row in rows)
    print(json.dumps({"rows": rows, "growth": growth, "recall": lowest, "noise": given.noise}, indent=2))
    print(f"growth {growth:.2f} (aim {GROWTH}), lowest recall {lowest:.3f} (aim {RECALL})", file=sys.stderr)
    return int(growth > GROWTH or lowest < RECALL)


if __name__ == "__main__":
    sys.exit(main())
