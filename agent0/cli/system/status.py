"""How the data folder fares."""

from typing import Any

import typer

from agent0.cli import console


def register(root: typer.Typer) -> None:
    """A verb of its own: it has no noun."""
    root.command("status")(status)


def status(as_json: console.Json = False) -> None:
    """Say what stands and works: log, tables and how far they are behind, processes, runs under way, failures, alarms.
    No server is started for it."""
    from agent0.api.status import status as found

    held = console.settings()
    told: dict[str, Any] = console.run_async(lambda: found(held))
    if not as_json:
        processes = told["processes"]
        told["processes"] = "not known" if processes is None else ", ".join(str(one["pid"]) for one in processes) or 0
        told["log"] = ", ".join(f"{name} {value}" for name, value in told["log"].items())
    console.record(told, as_json)
