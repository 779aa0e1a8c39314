"""Part of the rim: a folder of mined tasks, and the ledger of all that was tried for it.

``tasks/ID.json`` is what a student may see, ``solutions/ID.json`` what decides; both name files by digest
(``artifacts/``). ``ledger.jsonl`` has a line for each candidate: one that was cut short by a kill is a candidate that
is tried again.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Self

from agent0.errors import DependencyError, OperationError
from agent0.events.base import Value
from agent0.events.values import Artifact
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.storage.files import whole_file
from agent0.ports.storage import Artifacts
from agent0.tools.snapshots import save
from agent0.verification.repositories.mined_task import MinedSolution, MinedTask, SourceRecord

LEDGER, TASKS, SOLUTIONS = "ledger.jsonl", "tasks", "solutions"


class LedgerLine(Value):
    """A candidate that was tried: accepted as ``task``, or not, and ``why``. Where ``candidate`` is empty the line ends
    a package: which request it was, of which kind, for how many tasks by mutation, with which seed."""

    package: str
    candidate: str = ""
    kind: str = ""
    task: str = ""
    why: str = ""
    seconds: float = 0.0
    request: str = ""
    count: int = 0
    seed: int = 0
    sources: tuple[SourceRecord, ...] = ()


class MinedFolder:
    """A folder that one command at a time adds tasks to."""

    def __init__(self, path: Path, file: IO[bytes], lines: list[LedgerLine]) -> None:
        self.path, self.lines = path, lines
        self._file = file
        self.artifacts = FileArtifacts(path)

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[Self]:
        """The folder at ``path``, made where there is none.

        Raises:
            OperationError: another command adds to it.
            DependencyError: it cannot be written.
        """
        try:
            for folder in (path, path / TASKS, path / SOLUTIONS):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = (path / LEDGER).open("a+b")
        except OSError as error:
            raise DependencyError(f"The folder {path}", f"{error.strerror}.", "Name another with --out.") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise OperationError(
                    f"Another command mines into {path}.", "", "Wait for it, or name another."
                ) from error
            yield cls(path, file, _lines(file))

    def add(self, line: LedgerLine, task: MinedTask | None = None, solution: MinedSolution | None = None) -> None:
        """Write ``line`` down, behind the task that it accepts: all of it is on the disk when this returns.

        Raises:
            DependencyError: the disk is full, or the folder cannot be written.
        """
        try:
            for folder, value in ((SOLUTIONS, solution), (TASKS, task)):
                if value is not None:
                    with whole_file(self.path / folder / f"{value.id}.json") as fresh:
                        fresh.write_text(value.model_dump_json(indent=1) + "\n", encoding="utf-8")
            self._file.write(line.model_dump_json(exclude_defaults=True).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise DependencyError(f"The folder {self.path}", f"{error.strerror}.", "Free some space.") from error
        self.lines.append(line)


def _lines(file: IO[bytes]) -> list[LedgerLine]:
    """What was tried before, without a line that was cut short."""
    file.seek(0)
    data = file.read()
    if data and not data.endswith(b"\n"):
        file.write(b"\n")
    lines = []
    for line in data.split(b"\n"):
        with suppress(ValueError):
            lines.append(LedgerLine.model_validate(json.loads(line)))
    return lines


def stored(files: Mapping[str, bytes], artifacts: Artifacts) -> Artifact:
    """The manifest of ``files``, which are stored with it.

    Raises:
        DependencyError: the disk is full or cannot be written.
    """
    manifest = save(files, artifacts)
    assert manifest is not None  # noqa: S101 - a task has files
    return manifest
