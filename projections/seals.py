"""One row per hash-chain checkpoint of the log, kept with the position, so that tables remember what the log was."""

import sqlite3
from collections.abc import Iterator

from agent0.events import alarms as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, projection, select

FIELDS = ("seq", "first", "last", "sha256", "previous", "created")


@projection(
    key=("seq",),
    columns={
        "seq": int,
        "first": int,
        "last": int,
        "sha256": str,
        "previous": str,
        "events": int,
        "created": str,
    },
    events=(facts.LogSealed,),
)
def seals(e: Recorded) -> Iterator[Row]:
    """``seq`` is the checkpoint's place, behind the segment from ``first`` to ``last``."""
    if e.run == facts.LOG:
        yield {"seq": e.seq, **e.event.model_dump(mode="json")}


def list_seals(db: sqlite3.Connection) -> list[Row]:
    """List all hash-chain checkpoints of the log, oldest first."""
    return select(db, f"SELECT {', '.join(FIELDS)} FROM seals ORDER BY seq")  # noqa: S608 - names declared here


def bodies_between(db: sqlite3.Connection, first: int, last: int) -> dict[int, bytes]:
    """The stored bodies of the log that the tables hold, byte for byte, by sequence."""
    rows = db.execute("SELECT seq, body FROM events WHERE seq BETWEEN ? AND ?", (first, last))
    return {seq: body.encode() for seq, body in rows}
