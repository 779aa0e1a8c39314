"""Strategies by which a role chooses its model."""

from agent0.assembly.runtime.plugins import load_plugins
from agent0.cli import console
from agent0.routing.strategies import strategies


def strategies_(as_json: console.Json = False) -> None:
    """Strategies by which a role chooses between its model and those that stand in, and the settings each reads."""
    load_plugins()
    rows = [{"strategy": e.name, "reads": ", ".join(e.reads), "what": e.what} for e in strategies().values()]
    console.table(rows, as_json, ("strategy", "reads", "what"))
