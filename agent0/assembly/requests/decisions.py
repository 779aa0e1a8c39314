"""Part of the rim: a person's decision as the event to append: pause, cancel a run, retry, drop a failed reaction."""

from agent0.assembly.runtime.execution import resumption
from agent0.assembly.runtime.stamping import recorded
from agent0.errors import OperationError
from agent0.events.alarms import ReactionDropped, ReactionRetried
from agent0.events.base import Event, Recorded
from agent0.events.runs import PriorityChanged, RunCancelled, RunPaused
from agent0.projections.base import Row
from agent0.settings import Settings


def pausing(row: Row, reason: str = "") -> Recorded | None:
    """The event that pauses the run of ``row``; None where it is paused already.

    Raises:
        OperationError: it is not running.
    """
    return None if row["status"] == "paused" else _decided(row, RunPaused(reason=reason), "running")


def cancelling(row: Row, reason: str = "") -> Recorded:
    """The event that ends the run of ``row`` for good.

    Raises:
        OperationError: it is over.
    """
    return _decided(row, RunCancelled(reason=reason), "running", "paused", "failed")


def weighing(row: Row, priority: int) -> Recorded:
    """The event that gives the run of ``row`` another ``priority``, 1 to 100.

    Raises:
        OperationError: it is over.
    """
    return _decided(row, PriorityChanged(priority=priority), "running", "paused", "failed")


def decided(settings: Settings, row: Row, decision: str, reason: str = "") -> Recorded:
    """The event that pauses, resumes or cancels (``decision``) the run of ``row``, which may have failed.

    Raises:
        OperationError: it is in no state for it, or there is nothing to decide.
    """
    if decision == "pause":
        begin = pausing(row, reason)
    else:
        begin = cancelling(row, reason) if decision == "cancel" else resumption(settings, row)
    if begin is None:
        raise OperationError(f"Run {row['run']} is {row['status']} already.", fix="There is nothing to decide.")
    return begin


def retrying(row: Row) -> Recorded:
    """The event that has the failed reaction of ``row`` tried again.

    Raises:
        OperationError: that was decided before.
    """
    return _settled(row, ReactionRetried(**{name: row[name] for name in ReactionRetried.model_fields}))


def dropping(row: Row, reason: str = "") -> Recorded:
    """The event with which a run goes on without the effects of the failed reaction of ``row``.

    Raises:
        OperationError: that was decided before.
    """
    fields = {name: row[name] for name in ReactionDropped.model_fields if name != "reason"}
    return _settled(row, ReactionDropped(**fields, reason=reason or "dropped by hand"))


def _settled(row: Row, event: Event) -> Recorded:
    if row["status"] != "open":
        raise OperationError(f"Failure {row['failure']} is {row['status']} already.", "Only open ones can be settled.")
    return recorded(str(row["run"]), event)


def _decided(row: Row, event: Event, *allowed: str) -> Recorded:
    name, status = str(row["run"]), str(row["status"])
    if status not in allowed:
        why = f"Only a run that is {' or '.join(allowed)} can be changed like this."
        raise OperationError(f"Run {name} is {status}.", why, f"See: agent0 run show {name}")
    return recorded(name, event)
