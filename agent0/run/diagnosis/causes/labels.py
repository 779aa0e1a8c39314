"""Training on labels that are wrong: majority answers where nothing computes what is right."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Observation, blamed
from agent0.run.monitors.labels import learns_from_majority

LOWEST = 0.5
ENOUGH = 5
KEYS = ("run.training.student.gate", "run.verification.unchecked", "run.curriculum.families")


@cause(42)
def labels(case: Case) -> Cause | None:
    """Report the first iteration whose answers, as the student is trained on them, are mostly wrong."""
    plan = case.config
    majority = learns_from_majority(plan)
    for iteration in case.iterations:
        if iteration.decided < ENOUGH:
            continue
        share = iteration.measures.get("label_accuracy") if plan.attempts > 1 else iteration.right / iteration.decided
        if majority and share is not None and share < LOWEST:
            what = f"the majority's answers are labels, and {1 - share:.0%} of them are wrong"
            return _cause(case, iteration.number, what, iteration.examples.get("wrong"))
    return None


def _cause(case: Case, iteration: int, what: str, example: Observation | None) -> Cause:
    settings = case.changed(*KEYS)
    conclusion = f"{what} ({blamed(case, settings, 'run.training.student.gate', 'run.verification.unchecked')})"
    evidence = (example,) if example else ()
    mend = case.again(settings) if settings else case.again(values={"run.training.student.gate": "verified"})
    return Cause("labels", iteration, conclusion, evidence, mend, settings=settings)
