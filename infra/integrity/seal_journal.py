"""What is known of the log outside its server: one line a fact, in the data folder, on disk before one relies on it.

A server that lost events says nothing; this file remembers what there was.
"""

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from agent0.errors import DependencyError, LogError
from agent0.provenance.hash_chain import Seal

NAME = "seals.jsonl"
IMPORTING = ".importing"
"""Folder beside it where an import is made ready."""


@dataclass(frozen=True)
class Stream:
    """A stream of this log: made at ``created``, numbered from ``first`` on; ``digest`` is the seal it goes on from."""

    created: str
    first: int = 1
    digest: str = ""
    redacted: tuple[int, ...] = ()
    """What was left out of the archive it was imported from: first and last sequence of each stretch in turn."""
    last: int = 0
    """How far it reached when it was noted, sealed or not; 0: nobody looked."""

    def __post_init__(self) -> None:
        if len(self.redacted) % 2:
            raise ValueError("what was left out are no stretches of events")

    def admits(self, seq: int) -> bool:
        """Whether ``seq`` was left out of that archive."""
        pairs = zip(self.redacted[::2], self.redacted[1::2], strict=True)
        return any(first <= seq <= last for first, last in pairs)


@dataclass(frozen=True)
class Archived:
    """Events up to ``before`` went into the archive at ``path``; ``digest`` is the seal over all of them. ``budgets``:
    the newest entries, as they were stored, of those that go on behind it."""

    first: int
    before: int
    digest: str
    path: str
    manifest: str
    size: int
    runs: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Journal:
    """The whole file. ``left`` is the archive whose stream was given up and has no successor yet."""

    streams: tuple[Stream, ...] = ()
    seals: tuple[Seal, ...] = ()
    archives: tuple[Archived, ...] = ()
    left: Archived | None = None

    @property
    def stream(self) -> Stream | None:
        """The present one; None where nothing is known yet."""
        return self.streams[-1] if self.streams else None

    @property
    def identity(self) -> str:
        """When the first stream was made: what tables belong to, however often the log is continued."""
        return self.streams[0].created if self.streams else ""

    @property
    def first(self) -> int:
        """First sequence there ever was."""
        return self.streams[0].first if self.streams else 1

    @property
    def newest(self) -> Seal | None:
        """The newest seal of the present stream."""
        seals = [seal for seal in self.seals[-1:] if self.stream and seal.seq >= self.stream.first]
        return seals[0] if seals else None

    @property
    def runs(self) -> dict[str, str]:
        """Runs in archives, and where those are."""
        return {run: archive.path for archive in self.archives for run in archive.runs}


_KINDS: dict[str, type[Any]] = {"stream": Stream, "seal": Seal, "archived": Archived}


@dataclass(frozen=True)
class SealFile:
    """The file of a data folder. Several processes may write at once."""

    home: Path
    path: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", self.home / NAME)

    def read(self) -> Journal:
        """Everything noted so far. A last line that was cut off by a crash counts for nothing.

        Raises:
            LogError: another line cannot be read.
        """
        self._finish_import()
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return Journal()
        *lines, _ = text.split(b"\n")
        facts = [self._fact(number, line) for number, line in enumerate(lines, 1)]
        streams = tuple(fact for fact in facts if isinstance(fact, Stream))
        seals = tuple(fact for fact in facts if isinstance(fact, Seal))
        archives = tuple(fact for fact in facts if isinstance(fact, Archived))
        left = facts[-1] if facts and isinstance(facts[-1], Archived) else None
        return Journal(streams, seals, archives, left)

    def note(self, *facts: Stream | Seal | Archived) -> None:
        """Add what is not there yet, in order; on disk when this returns. A seal is noted only behind the last one.

        Raises:
            DependencyError: the disk is full.
        """
        if not facts:
            return
        try:
            self._note(facts)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise DependencyError("disk space", f"{self.path} cannot be added to.", "Free some space.") from error

    def _note(self, facts: Sequence[Stream | Seal | Archived]) -> None:
        with self._locked():
            recorded = self.read()
            new = [fact for fact in facts if _is_new(fact, recorded)]
            if not new:
                return
            self._cut_torn()
            write_facts(self.path, new)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.home / ".seals.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _fact(self, number: int, line: bytes) -> Stream | Seal | Archived:
        try:
            raw = json.loads(line)
            kind = _KINDS[raw.pop("what")]
            lists = {name: tuple(value) for name, value in raw.items() if isinstance(value, list)}
            return _typed(kind(**(raw | lists)))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            why = f"Line {number} of {self.path} is damaged: {str(error)[:300]!r}."
            fix = (
                "Check the log with `agent0 events verify` against a copy of that file, then put the copy in its place."
            )
            raise LogError("The seals noted outside the log cannot be read.", why, fix) from error

    def _cut_torn(self) -> None:
        if not self.path.exists():
            return
        text = self.path.read_bytes()
        if text and not text.endswith(b"\n"):
            os.truncate(self.path, text.rfind(b"\n") + 1)

    def _finish_import(self) -> None:
        """An import that was killed between its two last steps: the log is in place, its seals are not."""
        ready = self.home / IMPORTING / NAME
        if ready.exists() and not (self.home / IMPORTING / "nats").exists():
            ready.replace(self.path)


def _typed(fact: Any) -> Stream | Seal | Archived:
    """``fact``; raises TypeError where a field is of another type than it is declared with."""
    for member in fields(fact):
        value, within = getattr(fact, member.name), get_args(member.type)[:1]
        if not all(type(each) in within for each in value) if within else type(value) is not member.type:
            raise TypeError(f"{member.name} is {value!r}")
    return fact  # type: ignore[no-any-return]


def write_facts(path: Path, facts: Sequence[Stream | Seal | Archived]) -> None:
    """Add lines to a file of seals; on disk when this returns."""
    names = {kind: name for name, kind in _KINDS.items()}
    lines = [json.dumps({"what": names[type(fact)], **asdict(fact)}, separators=(",", ":")) + "\n" for fact in facts]
    is_new = not path.exists()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:  # noqa: PTH123 - 0600 from birth
        file.write("".join(lines).encode())
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Fsync ``folder``, so that the names in it survive a power loss."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_new(fact: Stream | Seal | Archived, recorded: Journal) -> bool:
    if isinstance(fact, Seal):
        return not recorded.seals or fact.seq > recorded.seals[-1].seq
    return fact not in (recorded.streams if isinstance(fact, Stream) else recorded.archives)
