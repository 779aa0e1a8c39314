"""A student that ends its attempts without an answer."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, blamed, of

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
        listed = case.replies.reading(case.run) if case.replies else f"agent0 trajectory list {case.run}"
        mend = case.again(settings) if settings else listed
        return Cause("silent", one.number, told, seen, mend, settings=settings, checkpoint=one.student,
                     fatal=not case.recovered(one.number))  # fmt: skip
    return None
