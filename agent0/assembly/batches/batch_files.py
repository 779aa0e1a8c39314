"""Part of the rim: the file of questions of a batch, read line by line, and the file of its answers, written in the
order of the questions. Neither is ever held as a whole."""

import asyncio
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from agent0.assembly.batches.batch_ids import RowIds
from agent0.errors import ConfigError, DependencyError
from agent0.infra.storage.files import IrregularError, open_regular
from agent0.tasks.batch_rows import BatchColumns, BatchRow, read_row

LONGEST_LINE = 16 << 20
"""Bytes of a line; of a longer one nothing is read."""
PART = 1 << 20
BOM = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""How UTF-16 begins."""
SHOWN = 5
"""Rows that cannot be asked and are named before anything is."""
WINDOW = 512
"""Rows that may be asked ahead of the first one that is not written yet."""


@dataclass(frozen=True)
class Survey:
    """What a file of questions holds: its digest, its rows, how many of them cannot be asked, and why the first of
    those cannot; how many have an id that an earlier row has, and which the first are."""

    sha256: str
    rows: int
    bad: int
    problems: tuple[str, ...]
    repeated: int = 0
    repeats: tuple[str, ...] = ()


def survey(path: Path, columns: BatchColumns, limit: int) -> Survey:
    """Look through a file once, reading its first ``limit`` rows (0: all).

    Raises:
        ConfigError: it cannot be read, is no file of JSON lines, or has no row that can be asked.
    """
    digest, rows, bad, problems = hashlib.sha256(), 0, 0, list[str]()
    with _opened(path) as file:
        for part in iter(lambda: file.read(PART), b""):
            digest.update(part)
    with RowIds(SHOWN) as ids:
        for row in read_rows(path, columns, limit):
            rows, bad = row.number, bad + bool(row.problem)
            problems += [row.problem] if row.problem and len(problems) < SHOWN else []
            ids.take(row)
    if rows == bad:
        why = f"{problems[0][:1].upper()}{problems[0][1:]}." if problems else "It has no rows."
        fix = "One JSON object a line is needed, with a column question (--question names another)."
        raise ConfigError(f"No row of {path} can be asked.", why, fix)
    return Survey(digest.hexdigest(), rows, bad, tuple(problems), ids.repeated, tuple(ids.examples))


def read_rows(path: Path, columns: BatchColumns, limit: int = 0, after: int = 0) -> Iterator[BatchRow]:
    """Yield the rows of a file behind row ``after``, up to row ``limit`` (0: the last)."""
    with _opened(path) as file:
        lines = enumerate(_lines(file, path), 1)
        for number, line in islice(lines, after, limit or None):
            if line is None:
                yield BatchRow(number, number, problem=f"row {number}: its line has more than {LONGEST_LINE:,} bytes")
            else:
                yield read_row(line, number, columns)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        file = open_regular(path)
    except IrregularError as error:
        raise ConfigError(f"{path} cannot be read.", f"Its kind: {error.strerror}.") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read.", f"{error.strerror}.", "Name the file of questions.") from error
    with file:
        yield file


def _lines(file: IO[bytes], path: Path) -> Iterator[bytes | None]:
    """The lines that are not blank, without the mark of UTF-8 before the first; None: one that is too long."""
    first = True
    while line := file.readline(LONGEST_LINE):
        if first and line.startswith(_WIDE):
            raise ConfigError(f"{path} is UTF-16.", "", "Save it as UTF-8.")
        line, first = line.removeprefix(BOM) if first else line, False
        if len(line) < LONGEST_LINE - len(BOM) or line.endswith(b"\n"):
            if line.strip():
                yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(PART)
        yield None


class AnswersFile:
    """The file of answers of one batch: rows in the order of the questions, each written once those before it are.
    ``written`` of them are there."""

    def __init__(self, path: Path, file: IO[bytes], written: int) -> None:
        self.written = written
        self._path, self._file = path, file
        self._waiting: dict[int, bytes] = {}
        self._moved = asyncio.Event()

    def add(self, number: int, answer: Mapping[str, object]) -> None:
        """Write row ``number`` as soon as all before it are written.

        Raises:
            DependencyError: the disk is full, or gone.
        """
        self._waiting[number] = json.dumps(answer).encode() + b"\n"
        try:
            while (line := self._waiting.pop(self.written + 1, None)) is not None:
                self._file.write(line)
                self.written += 1
            self._file.flush()
        except OSError as error:
            fix = "Free some space, then give the same command again: nothing is lost."
            raise DependencyError(f"The file {self._path}", f"{error.strerror}.", fix) from error
        self._moved.set()

    async def room(self, number: int) -> None:
        """Wait until row ``number`` is no more than ``WINDOW`` rows ahead of what is written."""
        while number > self.written + WINDOW:
            self._moved.clear()
            await self._moved.wait()


@contextmanager
def opened_answers(path: Path, batch: str) -> Iterator[AnswersFile]:
    """Open the answers of ``batch`` as far as they are written: a line that a kill cut short is taken away.

    Raises:
        ConfigError: it holds something else, cannot be written, or another process writes it.
    """
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+b")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written.", f"{error.strerror}.", "Name another: --out FILE") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            why = "It holds the file's lock."
            raise ConfigError(f"Another process writes {path}.", why, "Wait for it, or stop it.") from error
        yield AnswersFile(path, file, _mended(path, file, batch))
        os.fsync(file.fileno())


def head_of(batch: str) -> bytes:
    """Return how each line of the answers of ``batch`` begins."""
    return json.dumps({"batch": batch}).encode()[:-1]


def _mended(path: Path, file: IO[bytes], batch: str) -> int:
    """The number of whole rows, behind which the file now ends; 0 where it has to be written anew."""
    head = head_of(batch)
    begin = file.read(len(head))
    if not head.startswith(begin) and begin != head:
        fix = "Name another: --out FILE; or go on with the batch whose id it has: agent0 batch run --resume ID"
        raise ConfigError(f"{path} holds something else.", f"It is not of {batch}.", fix)
    rows, end, last = _whole_lines(file)
    whole = last is not None and last.get("row") == rows
    file.seek(end if whole else 0)
    file.truncate()
    return rows if whole else 0


def _whole_lines(file: IO[bytes]) -> tuple[int, int, dict[str, object] | None]:
    """How many lines a file has, where the last one ends, and what that holds; None: no object."""
    file.seek(0)
    rows, end, last = 0, 0, b""
    for line in file:
        if line.endswith(b"\n"):
            rows, end, last = rows + 1, end + len(line), line
    try:
        row = json.loads(last)
    except ValueError:
        row = None
    return rows, end, row if isinstance(row, dict) else None
