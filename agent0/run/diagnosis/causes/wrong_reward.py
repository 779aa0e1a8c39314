"""A part of the student's reward that rewards wrong answers, so that the whole reward does, too."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import WEIGHTS, Case, Cause, Observation, PartMeans

ENOUGH = 4
"""Attempts, right and wrong ones each, from which on their averages are compared."""


@cause(44)
def wrong_reward(case: Case) -> Cause | None:
    """Report the part that most rewards wrong attempts, where their whole rewards are no lower than those of right
    ones."""
    parts = [part for part in case.part_means if min(part.attempts) >= ENOUGH and part.wrong > part.right]
    parts = [part for part in parts if part.total_wrong >= part.total_right]
    if not parts:
        return None
    worst = max(parts, key=lambda part: part.wrong - part.right)
    key = f"{WEIGHTS}{worst.part}"
    settings = tuple(setting for setting in case.changed(key) if setting.key == key)
    whose = f" of plugin {worst.file}" if worst.file else ""
    conclusion = f"the reward {worst.part}{whose} pays wrong answers more than right ones: {_means(worst)}"
    conclusion += f" ({settings[0]})" if settings else ""
    mend = case.again(settings) if settings else case.again(values={key: 0})
    advice = f"That leaves it out. To keep it, correct {worst.file} and fork without that --set." if worst.file else ""
    evidence = (Observation(f"wrong, and rewarded for it by {worst.part}", attempt=worst.attempt, event=worst.event),)
    totals = Observation(f"the whole reward is {worst.total_wrong:.3g} for wrong, {worst.total_right:.3g} for right")
    return Cause(
        "wrong_reward",
        worst.iteration,
        conclusion,
        (*(evidence if worst.attempt else ()), totals),
        mend,
        advice,
        settings=settings,
        event=worst.event,
        explained=True,
    )


def _means(part: PartMeans) -> str:
    right, wrong = part.attempts
    return f"{part.wrong:.3g} on average for {wrong:,} wrong ones, {part.right:.3g} for {right:,} right ones"
