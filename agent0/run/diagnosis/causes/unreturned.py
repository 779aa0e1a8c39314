"""A function of a user's file that does not come back, so that the run stands still or its process has ended."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Observation
from agent0.run.diagnosis.causes.failing import CORRECT, named_file


@cause(24)
def unreturned(case: Case) -> Cause | None:
    """Report in which declaration of a user's file the process of a running run stands, or stood when it ended."""
    found = case.here.get("user_code")
    if case.status != "running" or not found or found["ended"] is case.here.get("carried"):
        return None
    told = f"{found['place']}, {'did' if found['ended'] else 'does'} not come back: "
    told += f"the run stands still there, for {found['seconds']:.0f} s so far"
    if found["ended"]:
        told = told.partition(": ")[0] + f", so its process ended after {found['seconds']:.0f} s"
    seen = (Observation("the last event before it", event=case.last),)
    advice = (
        CORRECT.format(named_file(found["place"]) or "the file") + " Stop a run that still stands there with Ctrl-C."
    )
    return Cause("unreturned", case.iteration, told, seen, case.again(at=case.last), advice, event=case.last)
