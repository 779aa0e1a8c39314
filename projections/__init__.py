"""Read models: tables that can be deleted and rebuilt from the log. One file, one table, one function."""

from agent0.projections.base import TABLES, Row, Table, projection, select
from agent0.projections.projector import Position, Projector, StoppedError, position
from agent0.projections.views import Rebuilt, RowDifference, Views, build, verify

__all__ = [
    "Position",
    "Projector",
    "Rebuilt",
    "Row",
    "RowDifference",
    "StoppedError",
    "Table",
    "Views",
    "build",
    "position",
    "projection",
    "select",
    "tables",
    "verify",
]


def tables() -> dict[str, Table]:
    """Return every table: one for each file of this folder that declares one, and those of plugins that
    were imported."""
    return TABLES.all()
