"""One row per run and type of event: how many there are, so that nobody counts a million of them."""

from collections.abc import Iterator

from agent0.events.base import Recorded
from agent0.projections.base import Row, projection, stamp


@projection(
    key=("run", "type"),
    columns={
        "run": str,
        "type": str,
        "events": int,
        "bytes": int,
        "first": str,
        "last": str,
        "first_seq": int,
        "last_seq": int,
    },
    first=("first", "first_seq"),
    adds=("events", "bytes"),
)
def event_counts(e: Recorded, body: str) -> Iterator[Row]:
    """Number, characters, and the first and last of them by time and sequence."""
    yield {
        "run": e.run,
        "type": e.type,
        "events": 1,
        "bytes": len(body),
        "first": stamp(e),
        "last": stamp(e),
        "first_seq": e.seq,
        "last_seq": e.seq,
    }
