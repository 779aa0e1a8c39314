"""Temperature: so high that text falls apart, or so low that all attempts at a task are one."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Iteration, blamed, of

HOT, COLD = 1.5, 0.2
NARROW = 0.1
"""Of top_p: only the likeliest token is left, nearly always."""
BAD = 0.5
"""Share of texts without a task, or of attempts without an answer."""
ALIKE = 0.9
"""Share of tasks all of whose attempts give one answer."""
FEW, ENOUGH = 0.1, 8
"""Share of right attempts, of at least so many."""


@cause(45)
def sampling(case: Case) -> Cause | None:
    """Report a temperature (or top_p) with which the base itself writes nothing that can be read, or repeats itself."""
    for iteration in case.iterations:
        first = iteration is case.iterations[0]
        if first and iteration.screened and iteration.unreadable >= BAD * iteration.screened and _hot(case, "teacher"):
            share = f"{of(iteration.screened - iteration.unreadable, iteration.screened)} texts hold a task"
            return _cause(case, iteration, "teacher", share, "malformed")
        silent = iteration.attempts and iteration.attempts - iteration.answered >= BAD * iteration.attempts
        astray = iteration.decided >= ENOUGH and iteration.right <= FEW * iteration.decided
        if first and (silent or astray) and _hot(case, "student"):
            share = (
                f"{of(iteration.answered, iteration.attempts)} attempts give an answer, {iteration.right:,} a right one"
            )
            return _cause(case, iteration, "student", share, "end:length", "end:no_answer", "wrong")
        if _repeats(case, iteration):
            share = (
                f"at {of(iteration.alike, iteration.repeated)} tasks all attempts give the same answer, so none teaches"
            )
            narrow = case.config.student.temperature > COLD
            return _cause(case, iteration, "student", share, key="top_p" if narrow else "temperature")
    return None


def _repeats(case: Case, iteration: Iteration) -> bool:
    cold = case.config.student.temperature <= COLD or case.config.student.top_p <= NARROW
    return cold and 0 < ALIKE * iteration.repeated <= iteration.alike and iteration.mixed <= FEW * iteration.repeated


def _hot(case: Case, role: str) -> bool:
    actor = case.config.student if role == "student" else case.config.teacher
    longer = case.changed(f"run.{role}.max_tokens")
    sampled = case.changed(f"run.{role}.temperature", f"run.{role}.top_p")
    return actor.temperature > HOT or bool(sampled and actor.temperature > 1 and not longer)


def _cause(case: Case, iteration: Iteration, role: str, share: str, *examples: str, key: str = "temperature") -> Cause:
    option, key = key, f"run.{role}.{key}"
    settings = case.changed(key, f"run.{role}.top_p")
    conclusion = f"the {role}'s {option}: {share} ({blamed(case, settings, key)})"
    evidence = iteration.observations_of(*examples)
    mend = case.again(settings) if settings else case.again(values={key: 1.0})
    return Cause(
        "sampling",
        iteration.number,
        conclusion,
        evidence,
        mend,
        settings=settings,
        checkpoint=getattr(iteration, role),
        fatal=not case.recovered(iteration.number),
        explained=bool(settings),
    )
