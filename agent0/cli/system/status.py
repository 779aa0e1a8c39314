"""How the data folder fares."""

from typing import Any

from agent0.api.status import status as found
from agent0.cli import console, flags


def status(as_json: console.Json = False) -> None:
    """Say what stands and works: log, tables and how far they are behind, processes, runs under way, failures, alarms.
    No server is started for it."""
    settings = flags.settings()
    state: dict[str, Any] = console.run_async(lambda: found(settings))
    if not as_json:
        processes = state["processes"]
        state["processes"] = (
            "not known" if processes is None else ", ".join(str(process["pid"]) for process in processes) or 0
        )
        state["log"] = ", ".join(f"{name} {value}" for name, value in state["log"].items())
    console.record(state, as_json)
