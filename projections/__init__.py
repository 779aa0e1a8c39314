"""Read models: tables that can be thrown away and made again from the log. One file, one table, one function."""

import importlib
import pkgutil

from projections.base import Row, Table, projection, registered, select
from projections.projector import Position, Projector, StoppedError, position
from projections.views import Difference, Rebuilt, Views, build, verify

__all__ = [
    "Difference",
    "Position",
    "Projector",
    "Rebuilt",
    "Row",
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
    """Every table: one for each file of this folder that declares one, and those of plugins that were imported."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return registered()
