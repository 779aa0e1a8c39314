"""One row per change of the tool policy by a user, beside what a profile's settings say."""

import sqlite3
from collections.abc import Iterator

from agent0.events import policies as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, find, projection, stamp


@projection(
    key=("profile", "kind", "name"),
    columns={
        "profile": str,
        "kind": str,
        "name": str,
        "allowed": bool,
        "reason": str,
        "times": int,
        "changed": str,
    },
    events=(facts.PolicyChanged,),
    adds=("times",),
)
def policies(e: Recorded) -> Iterator[Row]:
    """The last change of each name; ``times`` counts how often it was changed."""
    x = e.event
    assert isinstance(x, facts.PolicyChanged)  # noqa: S101 - declared above
    yield {**x.model_dump(), "times": 1, "changed": stamp(e)}


def list_policies(db: sqlite3.Connection, profile: str = "") -> list[Row]:
    """What was changed, in the order of profile, kind and name; of every profile where none is named."""
    return find(db, "SELECT * FROM policies", {"profile": profile}, "profile, kind, name")
