"""Part of the rim: tables as of a past event, made of the bodies that the live tables hold. As a program it makes them
in a process of its own: ``python -m agent0.assembly.replay.past_tables LIVE BASE INTO STREAM FIRST AT``, where BASE is
a file as of an earlier event, or empty."""

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from agent0.assembly.runtime.plugins import load_plugins
from agent0.infra.storage import sqlite
from agent0.projections import Projector, position, tables
from agent0.projections.seals import bodies_between

CHUNK = 500


def make_past(live: sqlite3.Connection, base: Path | None, path: Path, stream: str, first: int, at: int) -> None:
    """Make the tables as of event ``at`` into ``path``, from those of ``base`` on. The log begins with ``first``."""
    done = first - 1
    if base:
        shutil.copyfile(base, path)
        with closing(sqlite.connect(path, read_only=True)) as db:
            done = position(db).seq
    projector = Projector(path, sqlite.connect, tables(), stream, first)
    try:
        for start in range(done + 1, at + 1, CHUNK):
            projector.apply(sorted(bodies_between(live, start, min(start + CHUNK - 1, at)).items()))
    finally:
        projector.close()


def main(live: str, base: str, path: str, stream: str, first: str, at: str) -> None:
    """Make the tables of ``live`` as they were at a moment, in a process of its own."""
    load_plugins()
    with closing(sqlite.connect(Path(live), read_only=True)) as db:
        make_past(db, Path(base) if base else None, Path(path), stream, int(first), int(at))


if __name__ == "__main__":
    main(*sys.argv[1:])
