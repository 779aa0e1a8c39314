"""A student that ends its attempts without an answer."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, blamed, of

BAD = 0.5
KEYS = ("run.student.",)


@cause(54)
def silent(case: Case) -> Cause | None:
    """Report the first iteration in which half of the attempts gave no answer."""
    for iteration in case.iterations:
        attempts = iteration.attempts
        if not attempts or attempts - iteration.answered < BAD * attempts:
            continue
        settings = case.changed(*KEYS)
        ends = ", ".join(f"{n:,} {end}" for end, n in sorted(iteration.ends.items(), key=lambda item: -item[1]))
        conclusion = f"the student gives no answer: {of(iteration.answered, attempts)} attempts end with one ({ends}; "
        conclusion += f"{blamed(case, settings, 'run.student.provider', 'run.student.prompts')})"
        evidence = tuple(example for key, example in iteration.examples.items() if key.startswith("end:"))
        listed = case.replies.reading(case.run) if case.replies else f"agent0 trajectory list {case.run}"
        mend = case.again(settings) if settings else listed
        return Cause(
            "silent",
            iteration.number,
            conclusion,
            evidence,
            mend,
            settings=settings,
            checkpoint=iteration.student,
            fatal=not case.recovered(iteration.number),
        )
    return None
