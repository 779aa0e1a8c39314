"""A function of a user's file that does not come back, so that the run stands still or its process has ended."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Observation
from agent0.run.diagnosis.causes.failing import CORRECT, named_file


@cause(24)
def unreturned(case: Case) -> Cause | None:
    """Report in which declaration of a user's file the process of a running run stands, or stood when it ended."""
    stand = case.here.get("user_code")
    if case.status != "running" or not stand or stand["ended"] is case.here.get("carried"):
        return None
    conclusion = f"{stand['place']}, {'did' if stand['ended'] else 'does'} not come back: "
    conclusion += f"the run stands still there, for {stand['seconds']:.0f} s so far"
    if stand["ended"]:
        conclusion = conclusion.partition(": ")[0] + f", so its process ended after {stand['seconds']:.0f} s"
    evidence = (Observation("the last event before it", event=case.last),)
    advice = (
        CORRECT.format(named_file(stand["place"]) or "the file") + " Stop a run that still stands there with Ctrl-C."
    )
    return Cause("unreturned", case.iteration, conclusion, evidence, case.again(at=case.last), advice, event=case.last)
