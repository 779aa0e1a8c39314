"""What a place has to offer of a model, before any of it is fetched."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Report = Callable[[int], None]
"""Told how many bytes are there, again and again."""
PART = 1 << 20


@dataclass(frozen=True)
class Offer:
    """A file that can be had from ``place``. ``bytes`` and ``sha256`` are what the place itself states, 0 and empty
    where it does not. ``own``: another file of the same model than the catalogue's, known by the place's digest alone.
    ``write`` writes it to a path in a folder of its own, and goes on with what an earlier call left there."""

    place: str
    bytes: int
    sha256: str
    write: Callable[[Path, Report], None]
    own: bool = False


def copy(source: Path, out: Path, report: Report) -> None:
    """Copy a file of this machine, telling how far it is."""
    done = 0
    with source.open("rb") as reading, out.open("wb") as writing:
        while part := reading.read(PART):
            writing.write(part)
            done += len(part)
            report(done)
