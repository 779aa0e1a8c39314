"""A run that is not finished, for no other cause: paused, cancelled, failed, or carried by nobody."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Observation

IDLE_S = 300
"""Seconds without an event after which nobody seems to carry a running run."""


@cause(90)
def stopped(case: Case) -> Cause | None:
    """Report that the run was paused or cancelled, failed, or has had no event for minutes and nobody is
    known to execute it: what is executed may be slow."""
    why = f": {case.reason.rstrip('.')}" if case.reason else " by hand"
    idle = case.here.get("idle_s", 0.0)
    go_on = case.go_on()
    evidence = (Observation("its last event", event=case.last),)
    match case.status:
        case "paused":
            return Cause("stopped", case.iteration, f"the run was paused{why}", evidence, go_on, event=case.last)
        case "cancelled":
            return Cause("stopped", case.iteration, f"the run was cancelled{why}", evidence, event=case.last)
        case "failed":
            return Cause("stopped", case.iteration, f"the run failed{why}", evidence, go_on, event=case.last)
        case "running" if case.here.get("carried") is False:
            conclusion = "the run is stopped: no process executes it"
            return Cause("stopped", case.iteration, conclusion, evidence, go_on, event=case.last)
        case "running" if idle >= IDLE_S and not case.here.get("carried"):
            conclusion = f"nobody seems to carry the run: its last event is {idle / 60:,.0f} minutes old"
            return Cause("stopped", case.iteration, conclusion, evidence, go_on, event=case.last)
    return None
