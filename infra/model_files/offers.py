"""What a place has to offer of a model, before any of it is fetched."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Report = Callable[[int], None]
"""Told how many bytes are there, again and again."""
PART = 1 << 20


@dataclass(frozen=True)
class Offer:
    """A file that can be had from ``origin``. ``bytes`` and ``sha256`` are what the origin itself states, 0 and empty
    where it does not. ``is_variant``: another file of the model than the catalogue's, known by the origin's digest.
    ``write`` writes it to a path in a folder of its own, and goes on with what an earlier call left there."""

    origin: str
    bytes: int
    sha256: str
    write: Callable[[Path, Report], None]
    is_variant: bool = False


def copy(source: Path, out: Path, report: Report) -> None:
    """Copy a file of this machine, and report how far it is."""
    done = 0
    with source.open("rb") as reading, out.open("wb") as writing:
        while part := reading.read(PART):
            writing.write(part)
            done += len(part)
            report(done)
