"""Temperature: so high that text falls apart, or so low that all attempts at a task are one."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Iteration, Observation, blamed, of

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
    for one in case.iterations:
        first = one is case.iterations[0]
        if first and one.screened and one.unreadable >= BAD * one.screened and _hot(case, "teacher"):
            share = f"{of(one.screened - one.unreadable, one.screened)} texts hold a task"
            return _found(case, one, "teacher", share, "malformed")
        silent = one.attempts and one.attempts - one.answered >= BAD * one.attempts
        astray = one.decided >= ENOUGH and one.right <= FEW * one.decided
        if first and (silent or astray) and _hot(case, "student"):
            share = f"{of(one.answered, one.attempts)} attempts give an answer, {one.right:,} a right one"
            return _found(case, one, "student", share, "end:length", "end:no_answer", "wrong")
        if _repeats(case, one):
            share = f"at {of(one.alike, one.repeated)} tasks all attempts give the same answer, so none teaches"
            narrow = case.config.student.temperature > COLD
            return _found(case, one, "student", share, key="top_p" if narrow else "temperature")
    return None


def _repeats(case: Case, one: Iteration) -> bool:
    cold = case.config.student.temperature <= COLD or case.config.student.top_p <= NARROW
    return cold and 0 < ALIKE * one.repeated <= one.alike and one.mixed <= FEW * one.repeated


def _hot(case: Case, role: str) -> bool:
    actor = case.config.student if role == "student" else case.config.teacher
    longer = case.changed(f"run.{role}.max_tokens")
    sampled = case.changed(f"run.{role}.temperature", f"run.{role}.top_p")
    return actor.temperature > HOT or bool(sampled and actor.temperature > 1 and not longer)


def _found(case: Case, one: Iteration, role: str, share: str, *examples: str, key: str = "temperature") -> Cause:
    words, key = key, f"run.{role}.{key}"
    settings = case.changed(key, f"run.{role}.top_p")
    told = f"the {role}'s {words}: {share} ({blamed(case, settings, key)})"
    seen: tuple[Observation, ...] = tuple(one.examples[name] for name in examples if name in one.examples)
    mend = case.again(settings) if settings else case.again(values={key: 1.0})
    return Cause("sampling", one.number, told, seen, mend, settings=settings, checkpoint=getattr(one, role),
                 fatal=not case.recovered(one.number), explained=bool(settings))  # fmt: skip
