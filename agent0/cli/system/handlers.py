"""Handlers: which there are, and running some of them as a process."""

from agent0.assembly.runtime.plugins import known_handlers
from agent0.cli import console


def list_(as_json: console.Json = False) -> None:
    """Every handler with what it reacts to and what it needs."""
    rows = [
        {
            "handler": handler.name,
            "reacts_to": ", ".join(handler.events),
            "needs": ", ".join(handler.ports),
            "in_flight": handler.in_flight,
        }
        for handler in known_handlers().values()
    ]
    console.table(rows, as_json)
