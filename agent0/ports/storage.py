"""Roles of storage: artifacts, a run's history, benchmark rows, questions, documents."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent0.events.base import Recorded
from agent0.events.benchmarks import BenchmarksIndexed
from agent0.events.values import Artifact, Task
from agent0.ports.models import Embedder
from agent0.settings import CurriculumConfig, DocumentsConfig, QuestionsConfig

FILE_MARK = "\x1c"
"""Begins a file, in a text that holds several; its name follows, up to the end of the line. No JSON has this sign."""

SURPLUS = ""
"""The column of values that stand behind the last one that is named, in a file of separated values."""


@dataclass(frozen=True)
class Dataset:
    """One file of rows, or several in one: ``sha256`` is that of its bytes as they lie there. ``mined``: a folder of
    mined tasks, a line for each."""

    name: str
    text: str
    sha256: str
    mined: bool = False


@dataclass(frozen=True)
class Document:
    """A text file of a folder: its path in it, its text, and the sha256 of its bytes."""

    name: str
    text: str
    sha256: str


@dataclass(frozen=True)
class DocumentFolder:
    """The text files of a folder, by path; ``left_out``: (path, why) of all others. ``sha256`` is that of the paths
    and digests of ``documents``."""

    name: str
    documents: tuple[Document, ...]
    left_out: tuple[tuple[str, str], ...]
    sha256: str


class BenchmarkFiles(Protocol):
    """Reads files of benchmark rows in the folder that the user names."""

    def find(self, names: Sequence[str], benchmark: str, parts: Sequence[str] = ()) -> Dataset:
        """Read the first of the files ``names`` that is there, else all of ``parts`` that are.

        Raises:
            RequirementsError: no folder is named.
            NotFoundError: none is there. ConfigError: it cannot be read.
        """
        ...


class QuestionFile(Protocol):
    """Reads the file of questions that a run's tasks are from, and the documents that its teacher writes about."""

    def read(self, plan: QuestionsConfig) -> Dataset:
        """Read the file of ``plan``.

        Raises:
            DependencyError: it is not there, or has another digest than ``plan`` where that names one.
            ConfigError: it cannot be read. RequirementsError: it is Parquet, whose reader is not installed.
        """
        ...

    def files(self, plan: QuestionsConfig) -> "Artifacts":
        """Open the files that rows of ``plan`` name, where it names folders of mined tasks. Nothing is put there.

        Raises:
            DependencyError: a folder is not there. ConfigError: it cannot be read.
        """
        ...

    def documents(self, plan: DocumentsConfig) -> DocumentFolder:
        """Read the folder of ``plan``.

        Raises:
            DependencyError: it is not there, or its files have another digest than ``plan`` where that names one.
            ConfigError: it has no text, or too much.
        """
        ...


class Contamination(Protocol):
    """Compares generated tasks with benchmark items: rows of the configured folder, and items that the run makes from a
    seed (``seeded``: benchmark, how many, seed). Without either it compares with nothing."""

    async def facts(
        self, plan: CurriculumConfig, embedder: Embedder, seeded: Sequence[tuple[str, int, int]] = ()
    ) -> BenchmarksIndexed | None:
        """Describe what tasks are compared with, None where that is nothing. The first call embeds all items (minutes,
        once)."""
        ...

    async def overlaps(
        self,
        tasks: Sequence[Task],
        vectors: Sequence[Sequence[float]],
        plan: CurriculumConfig,
        embedder: Embedder,
        seeded: Sequence[tuple[str, int, int]] = (),
    ) -> list[str]:
        """For each task, name the benchmark item that it repeats and what they share; empty where it repeats none.

        ``vectors`` are the questions as ``embedder`` embeds them.
        """
        ...


class Artifacts(Protocol):
    """Content-addressed store of bytes. An artifact is written and fsynced before the event that names it."""

    def put(self, data: bytes, media: str = "application/octet-stream") -> Artifact:
        """Store ``data`` under its sha256."""
        ...

    def get(self, artifact: Artifact) -> bytes:
        """Return the content of ``artifact``, its digest checked.

        Raises:
            NotFoundError: not in the store.
            LogError: the content does not match its digest.
        """
        ...

    def discard(self, artifact: Artifact) -> None:
        """Delete what no event names, nor ever will; what is not there stays so."""
        ...


class History(Protocol):
    """Reads the stored events of a run in stream order."""

    def read(self, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0) -> AsyncIterator[Recorded]:
        """Read events of ``run`` with after < seq <= until (until 0: to the present end); all types where
        none is named."""
        ...
