"""Runs that ended otherwise than finished, told as events."""

from agent0.events import runs
from agent0.events.base import Recorded
from tests.story import Teller


def cancelled_run(run: str = "r9") -> list[Recorded]:
    """A run that a person ended before its first task was closed."""
    teller = Teller(run, 1, 2, 1, 0)
    teller.tell_all(incidents=False)
    kept = teller.told[:12]
    teller.told = kept
    teller.tell(runs.PriorityChanged(priority=20))
    teller.tell(runs.RunCancelled(reason="enough"))
    return teller.told


def failed_run(run: str = "r8") -> list[Recorded]:
    """A run that gave up too much."""
    teller = Teller(run, 1, 2, 1, 0)
    teller.tell_all(incidents=False)
    teller.told = teller.told[:12]
    teller.tell(runs.RunFailed(reason="2 of 2 were given up", cause_kind="given_up", iteration=0, state_sha="0" * 64))
    return teller.told


def deleted_run(run: str = "r7") -> list[Recorded]:
    """A run that failed, was hidden under a tag, and deleted."""
    teller = Teller(run, 1, 2, 1, 0)
    teller.told = failed_run(run)
    teller.tell(runs.RunLabelled(hidden=True, tags=("old",), by="laptop", note="no longer needed"))
    teller.tell(runs.RunDeleted(artifacts=3, bytes=4096, by="laptop", reason="no longer needed"))
    return teller.told
