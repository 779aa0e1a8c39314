"""A budget is used up: calls that cost money wait until its cap is raised."""

import re

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Observation

BUDGET = re.compile(r"budget of (run|day|provider|user) (.+)")
CAP = re.compile(r"of \$([\d,.]*\d)")


@cause(19)
def budget(case: Case) -> Cause | None:
    """Report the first budget that handlers of an unfinished run wait for, or for which it failed."""
    waits = [one for one in case.waits if BUDGET.fullmatch(one.dependency)]
    if not waits or case.status not in ("running", "paused", "failed"):
        return None
    first, failed = waits[0], case.status == "failed"
    if failed and case.ended != "dependency":
        return None
    scope, name = BUDGET.fullmatch(first.dependency).groups()  # type: ignore[union-attr]
    cap = float(found[1].replace(",", "")) if (found := CAP.search(first.message)) else 0.0
    raised = f"agent0 router budget set {scope} {name} --cap {2 * cap or 1:g}"
    told = f"the {first.dependency} is used up, and {', '.join(first.waiting)} waits for a higher cap"
    seen = tuple(Observation(f"since {one.since[:19]}: {one.message}", event=one.event) for one in waits)
    if failed:
        told = f"{told}; the run failed after waiting for run.give_up_after"
        return Cause("budget", case.iteration, told, seen, case.go_on(), f"First: {raised}", event=first.event)
    advice = "Twice the cap that it has; name what you want to spend. The run goes on by itself."
    return Cause("budget", case.iteration, told, seen, raised, advice, event=first.event)
