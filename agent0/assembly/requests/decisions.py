"""Part of the rim: a person's word on a run, as the event to append: pause it, or cancel it for good."""

from collections.abc import Mapping
from typing import Any

from agent0.assembly.runtime.stamping import recorded
from agent0.errors import OperationError
from events.base import Event, Recorded
from events.runs import RunCancelled, RunPaused


def pausing(row: Mapping[str, Any], reason: str = "") -> Recorded | None:
    """The event that pauses the run of ``row``; None where it is paused already.

    Raises:
        OperationError: it is not running.
    """
    return None if row["status"] == "paused" else _decided(row, RunPaused(reason=reason), "running")


def cancelling(row: Mapping[str, Any], reason: str = "") -> Recorded:
    """The event that ends the run of ``row`` for good.

    Raises:
        OperationError: it is over.
    """
    return _decided(row, RunCancelled(reason=reason), "running", "paused", "failed")


def _decided(row: Mapping[str, Any], event: Event, *allowed: str) -> Recorded:
    name, status = str(row["run"]), str(row["status"])
    if status not in allowed:
        why = f"Only a run that is {' or '.join(allowed)} can be changed like this."
        raise OperationError(f"Run {name} is {status}.", why, f"See: agent0 run show {name}")
    return recorded(name, event)
