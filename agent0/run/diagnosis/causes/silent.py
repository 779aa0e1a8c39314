"""A student that ends its attempts without an answer."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, blamed, of
from agent0.run.diagnosis.replies import CUT, UNCLOSED

BAD = 0.5
KEYS = ("run.student.",)


@cause(54)
def silent(case: Case) -> Cause | None:
    """Report the first iteration in which half of the attempts gave no answer."""
    for one in case.iterations:
        made = one.attempts
        if not made or made - one.answered < BAD * made:
            continue
        settings = case.changed(*KEYS)
        ends = ", ".join(f"{n:,} {end}" for end, n in sorted(one.ends.items(), key=lambda held: -held[1]))
        told = f"the student gives no answer: {of(one.answered, made)} attempts end with one ({ends}; "
        told += f"{blamed(case, settings, 'run.student.provider', 'run.student.prompts')})"
        seen = tuple(example for key, example in one.examples.items() if key.startswith("end:"))
        mend = case.again(settings) if settings else _mend(case)
        return Cause("silent", one.number, told, seen, mend, settings=settings, checkpoint=one.student,
                     fatal=not case.recovered(one.number))  # fmt: skip
    return None


def _mend(case: Case) -> str:
    """More room where replies end too early, else where to read them."""
    if case.replies and next(iter(case.replies.kinds), "") in (CUT, UNCLOSED):
        return case.again(values={"run.student.max_tokens": 4 * case.config.student.max_tokens})
    listed = f"agent0 trajectory list {case.run}"
    return f"{listed} --evaluation {case.replies.evaluation} --wrong" if case.replies else listed
