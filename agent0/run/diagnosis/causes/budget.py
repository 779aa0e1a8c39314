"""A budget is used up: calls that cost money wait until its cap is raised."""

import re

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Observation

BUDGET = re.compile(r"budget of (run|day|provider|user) (.+)")
CAP = re.compile(r"of \$([\d,.]*\d)")


@cause(19)
def budget(case: Case) -> Cause | None:
    """Report the first budget that handlers of an unfinished run wait for, or for which it failed."""
    waits = [wait for wait in case.waits if BUDGET.fullmatch(wait.dependency)]
    if not waits or case.status not in ("running", "paused", "failed"):
        return None
    first, failed = waits[0], case.status == "failed"
    if failed and case.ended != "dependency":
        return None
    scope, name = BUDGET.fullmatch(first.dependency).groups()  # type: ignore[union-attr]
    cap = float(match[1].replace(",", "")) if (match := CAP.search(first.message)) else 0.0
    raised = f"agent0 router budget set {scope} {name} --cap {2 * cap or 1:g}"
    conclusion = f"the {first.dependency} is used up, and {', '.join(first.waiting)} waits for a higher cap"
    evidence = tuple(Observation(f"since {wait.since[:19]}: {wait.message}", event=wait.event) for wait in waits)
    if failed:
        conclusion = f"{conclusion}; the run failed after waiting for run.give_up_after"
        return Cause(
            "budget", case.iteration, conclusion, evidence, case.go_on(), f"First: {raised}", event=first.event
        )
    advice = "Twice the cap that it has; name what you want to spend. The run goes on by itself."
    return Cause("budget", case.iteration, conclusion, evidence, raised, advice, event=first.event)
