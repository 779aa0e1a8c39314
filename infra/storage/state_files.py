"""Files that save a process from folding a run from its beginning. A cache: whoever deletes the folder loses nothing.

``<home>/snapshots/<run>/<seq>.part`` holds the sha256 of the rest as hex digits, a line feed, and the rest: compressed
JSON. Each part adds to the one that it names, so that a long run's is never written twice.
"""

import json
import os
import shutil
import threading
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from agent0.events.base import TOKEN, sha256
from agent0.infra.storage.files import read_regular, require_room

LARGEST = 256 << 20
"""Bytes of a part, and of what it holds: more is refused unread."""
_DIGITS = 64
_LEFT_S = 60.0
"""Seconds after which a file that is still being written belongs to a process that was killed."""


class BadPartError(ValueError):
    """A file is cut, altered, or holds something else."""


@dataclass(frozen=True)
class Part:
    """What a run came to between the parts ``after`` and ``seq``, and its state there."""

    run: str
    version: str
    """Of the code that folded it."""
    log: str
    """Of which log, and what of it was set aside."""
    seq: int
    """Stream sequence of the event that the state is just after."""
    body: str
    """sha256 of that event as stored."""
    proof: int
    """Stream sequence of an event that says what the state's digest was there."""
    state_sha: str
    state: str
    """As ``agent0.state.snapshot`` writes it."""
    done: Mapping[str, list[str]]
    """Handler -> ids of the causes that it reacted to."""
    notes: list[tuple[int, str]]
    """Sequence and body of each event of the kinds that a view remembers beside the state."""
    after: int = 0
    """Sequence of the part before; 0: there is none."""
    before: str = ""
    """sha256 of that part."""


class StateFiles:
    """The parts of every run below one data folder."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def folder(self, run: str) -> Path:
        """Where the parts of ``run`` are."""
        if not TOKEN.fullmatch(run):
            raise ValueError(f"{run!r} is no run")
        return self._home / "snapshots" / run

    def path(self, run: str, seq: int) -> Path:
        """The file of one part."""
        return self.folder(run) / f"{seq:012d}.part"

    def positions(self, run: str) -> list[int]:
        """Sequences of the parts of ``run``, the newest first."""
        names = [path.stem for path in self.folder(run).glob("*.part")]
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def save(self, part: Part) -> str:
        """Write ``part`` in one piece, or leave what is there; returns its sha256.

        Raises:
            OSError, DependencyError: the disk is full, or the folder cannot be written.
        """
        rest = zlib.compress(json.dumps(asdict(part), separators=(",", ":")).encode(), 1)
        digest, path = sha256(rest), self.path(part.run, part.seq)
        content = f"{digest}\n".encode() + rest
        if not _holds(path, content):
            require_room(self._home)
            path.parent.mkdir(parents=True, exist_ok=True)
            _clean(path.parent)
            unfinished = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.tmp")
            unfinished.write_bytes(content)
            unfinished.replace(path)
        return digest

    def load(self, run: str, seq: int) -> tuple[Part, str]:
        """A part and its sha256.

        Raises:
            BadPartError: it is cut, altered, or no part of ``run``. OSError: it cannot be opened.
        """
        path = self.path(run, seq)
        content = read_regular(path, LARGEST)
        digest, rest = content[:_DIGITS].decode("ascii", "replace"), content[_DIGITS + 1 :]
        if sha256(rest) != digest or content[_DIGITS : _DIGITS + 1] != b"\n":
            raise BadPartError(f"{path} is cut or altered.")
        part = _read(rest, path)
        if (part.run, part.seq) != (run, seq):
            raise BadPartError(f"{path} is of event {part.seq} of {part.run}.")
        return part, digest

    def clear(self) -> None:
        """Remove all parts of all runs."""
        shutil.rmtree(self._home / "snapshots", ignore_errors=True)


def _holds(path: Path, content: bytes) -> bool:
    """Whether another process wrote the same: a part that was altered since is written anew."""
    try:
        return read_regular(path, LARGEST) == content
    except OSError:
        return False


def _read(rest: bytes, path: Path) -> Part:
    try:
        raw = json.loads(zlib.decompressobj().decompress(rest, LARGEST))
        notes = [(int(seq), str(body)) for seq, body in raw["notes"]]
        return Part(**{member.name: raw[member.name] for member in fields(Part)} | {"notes": notes})
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise BadPartError(f"{path} holds no snapshot ({type(error).__name__}).") from error


def _clean(folder: Path) -> None:
    """Remove what killed processes had begun to write."""
    for path in folder.glob("*.tmp"):
        try:
            if time.time() - path.stat().st_mtime > _LEFT_S:
                path.unlink()
        except OSError:  # another process was sooner, or still writes it
            continue
