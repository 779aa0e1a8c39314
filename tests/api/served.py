"""Data folders for tests of the server."""

from pathlib import Path

from events.base import Recorded
from infra.storage import sqlite
from projections import Projector, tables
from tests.story import bodies

ADDRESS = "http://127.0.0.1:8650"


def stored(home: Path, events: list[Recorded]) -> Path:
    """``home`` with tables that hold ``events``; more can be added."""
    (home / "tables").mkdir(exist_ok=True)
    projector = Projector(home / "tables" / "view.db", sqlite.connect, tables(), "stream")
    projector.apply(bodies(events))
    projector.close()
    return home
