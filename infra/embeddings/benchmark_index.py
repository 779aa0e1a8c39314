"""Items of benchmarks as an index of what no task may repeat. Embedding them takes minutes, so vectors are kept on disk
under the digest of what was embedded by what."""

import asyncio
import contextlib
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from agent0.errors import ConfigError, NotFoundError
from agent0.evaluation.benchmarks import Item, benchmarks, make_items, read_items
from agent0.events.benchmarks import BenchmarksIndexed
from agent0.events.values import Task
from agent0.infra.storage.datasets import find
from agent0.infra.storage.files import whole_file
from agent0.ports.models import Embedder
from agent0.ports.storage import Contamination
from agent0.settings import CurriculumConfig
from agent0.tasks.decontamination import Reference, ReferenceIndex

GeneratedSuites = tuple[tuple[str, int, int], ...]
"""Suites made from a seed: benchmark, how many items, seed."""
_AT_ONCE = 256
"""Texts a call of the embedder; between calls others have their turn."""


class BenchmarkRows(Contamination):
    """All registered benchmarks whose rows lie in ``folder`` (none where it is None), and the suites that a run makes
    from a seed. The folder ``cache`` keeps vectors (None: nothing does)."""

    def __init__(self, folder: Path | None, cache: Path | None) -> None:
        """Read every file.

        Raises:
            ConfigError: a folder without rows of any benchmark, or with a row that is none.
        """
        self._cache = cache
        self._files: dict[str, str] = {}
        self.references: list[Reference] = []
        """Every item, in the order of benchmarks and rows."""
        self._held: dict[tuple[str, int, GeneratedSuites], ReferenceIndex] = {}
        self._building = asyncio.Lock()
        if folder is not None:
            self._read(folder)

    async def facts(
        self, plan: CurriculumConfig, embedder: Embedder, generated: Sequence[tuple[str, int, int]] = ()
    ) -> BenchmarksIndexed | None:
        """As ``Contamination.facts``."""
        if not self.references and not generated:
            return None
        await self._index(plan.overlap_ngram, embedder, tuple(generated))
        suites = [_suite_items(spec) for spec in generated]
        references = [*self.references, *(reference for suite in suites for reference in suite[0])]
        return BenchmarksIndexed(
            benchmarks=tuple(sorted({reference.benchmark for reference in references})),
            files=self._files
            | {f"{name} from seed {seed}": suite[1] for (name, _, seed), suite in zip(generated, suites, strict=True)},
            items=len(references),
            ngram=plan.overlap_ngram,
            limit=plan.overlap_limit,
            embedder=embedder.version,
        )

    async def overlaps(
        self,
        tasks: Sequence[Task],
        vectors: Sequence[Sequence[float]],
        plan: CurriculumConfig,
        embedder: Embedder,
        generated: Sequence[tuple[str, int, int]] = (),
    ) -> list[str]:
        """As ``Contamination.overlaps``, in a thread of its own."""
        if not (self.references or generated) or not tasks:
            return [""] * len(tasks)
        index = await self._index(plan.overlap_ngram, embedder, tuple(generated))
        pairs = list(zip(tasks, vectors, strict=True))
        return await asyncio.to_thread(lambda: [index.overlap(task, v, plan.overlap_limit) for task, v in pairs])

    def _read(self, folder: Path) -> None:
        for entry in benchmarks().values():
            try:
                rows = find(folder, entry.files, entry.name, entry.parts)
            except NotFoundError:
                continue
            self.references += [_reference(entry.name, item) for item in read_items(entry, rows.text, rows.name)]
            self._files[rows.name] = rows.sha256
        if not self.references:
            why = f"{folder} has rows of no benchmark, so no task could be compared with any."
            raise ConfigError(
                "benchmarks.folder is of no use.", why, "Name another folder, or none. See: agent0 bench list"
            )

    async def _index(self, n: int, embedder: Embedder, generated: GeneratedSuites) -> ReferenceIndex:
        async with self._building:
            key = embedder.version, n, generated
            if key not in self._held:
                groups = [group for group in (self.references, *(_suite_items(spec)[0] for spec in generated)) if group]
                vectors = np.concatenate([await self._vectors(embedder, group) for group in groups])
                references = [reference for group in groups for reference in group]
                self._held[key] = await asyncio.to_thread(ReferenceIndex, references, vectors, n)
            return self._held[key]

    async def _vectors(self, embedder: Embedder, references: Sequence[Reference]) -> "np.ndarray":
        """Of every reference's barest question, in order."""
        stems = [reference.stems[-1] for reference in references]
        whole = hashlib.sha256("\0".join((embedder.version, *stems)).encode(errors="replace"))
        path = self._cache / f"{whole.hexdigest()}.npy" if self._cache else None
        vectors = await asyncio.to_thread(_load, path, len(stems)) if path else None
        if vectors is None:
            parts = [await embedder.embed(stems[at : at + _AT_ONCE]) for at in range(0, len(stems), _AT_ONCE)]
            vectors = np.asarray([vector for part in parts for vector in part], dtype=np.float32)
            if path:
                await asyncio.to_thread(_store, path, vectors)
        return vectors


@lru_cache(maxsize=16)
def _suite_items(suite: tuple[str, int, int]) -> tuple[list[Reference], str]:
    """The items of a suite that is made from a seed, and their digest."""
    name, n, seed = suite
    items, digest = make_items(benchmarks()[name], n, seed)
    return [_reference(name, item) for item in items], digest


def _reference(benchmark: str, item: Item) -> Reference:
    """What is said about how to answer is no part of an item."""
    texts = item.texts
    return Reference(benchmark, item.id, "\n".join((texts[0], *item.choices)), texts)


def _load(path: Path, rows: int) -> "np.ndarray | None":
    """None where nothing whole lies there."""
    try:
        vectors: np.ndarray = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return vectors if vectors.ndim == 2 and len(vectors) == rows and vectors.dtype == np.float32 else None


def _store(path: Path, vectors: "np.ndarray") -> None:
    """Never half a file under the final name; a disk that is full costs the next process its time, nothing else."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with whole_file(path) as fresh, fresh.open("wb") as file:
            np.save(file, vectors)
