"""What it costs to compare tasks with the rows of benchmarks, how many of our own tasks are refused by mistake, and
which items would be missed if a teacher repeated them.

    python -m benchmarks.contamination FOLDER [--embedder minilm|ngram] [--tasks 100] [--known FILE]

``--known`` is a file of JSON lines with other questions of the same kind that are in no benchmark.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np

from agent0.events.values import Task
from agent0.infra.embeddings.benchmark_index import BenchmarkRows
from agent0.infra.embeddings.embedders import MiniLM, Ngram
from agent0.settings import CurriculumConfig
from agent0.tasks.decontamination import ReferenceIndex
from agent0.tasks.families import families

EMBEDDERS = {"minilm": MiniLM, "ngram": Ngram}


def asked(question: str, family: str = "open") -> Task:
    """A task that says ``question``."""
    return Task(question=question, domain="math", family=family, level=1, canonical=question)


def own_tasks(each: int) -> list[Task]:
    """So many of every family and level."""
    rng = random.Random(1)
    return [
        asked(entry.render(entry.sample(level, rng), rng), name)
        for name, entry in families(long=None).items()
        for level in range(1, entry.levels + 1)
        for _ in range(each)
    ]


async def measure(folder: Path, cache: Path, embedder: MiniLM | Ngram, each: int, known: list[str]) -> None:
    """Print everything."""
    start = time.perf_counter()
    rows = BenchmarkRows(folder, cache)
    print(f"read: {len(rows.references)} items in {time.perf_counter() - start:.2f} s")
    plan = CurriculumConfig()
    for what in ("first", "from the cache"):
        rows, start = BenchmarkRows(folder, cache), time.perf_counter()
        await rows.facts(plan, embedder)
        print(f"index, {what}: {time.perf_counter() - start:.1f} s")
    tracemalloc.start()
    index = ReferenceIndex(rows.references, np.zeros((0, 1), dtype=np.float32), plan.overlap_ngram)
    print(f"phrases in memory: {tracemalloc.get_traced_memory()[0] / 1e6:.1f} MB")
    tracemalloc.stop()
    for name, tasks in {"own tasks": own_tasks(each), "known": [asked(text) for text in known]}.items():
        vectors, start = await embedder.embed([task.question for task in tasks]), time.perf_counter()
        found = [overlap for overlap in await rows.overlaps(tasks, vectors, plan, embedder) if overlap]
        spent = 1000 * (time.perf_counter() - start) / max(1, len(tasks))
        print(f"{name}: {len(found)} of {len(tasks)} refused, {spent:.1f} ms each; {found[:5]}")
    for how in ("{}", "Tell me. {} Thanks."):
        told = [(reference.benchmark, stem) for reference in rows.references for stem in reference.stems]
        missed = Counter(name for name, stem in told if not index.overlap(asked(how.format(stem)), [0.0], 1.0))
        print(f"repeated as {how!r}, without embeddings: missed {dict(missed)} of {len(told)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--embedder", choices=EMBEDDERS, default="minilm")
    parser.add_argument("--tasks", type=int, default=100, help="of every family and level")
    parser.add_argument("--known", type=Path)
    chosen = parser.parse_args()
    known = [json.loads(line)["question"] for line in chosen.known.open()] if chosen.known else []

    async def carried() -> None:
        embedder = EMBEDDERS[chosen.embedder]()
        try:
            with tempfile.TemporaryDirectory() as cache:
                await measure(chosen.folder, Path(cache), embedder, chosen.tasks, known)
        finally:
            await embedder.close()

    asyncio.run(carried())


if __name__ == "__main__":
    main()
