"""A student that ends no better than it began, or of which no checkpoint was promoted, for no cause that is known."""

from typing import Any

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Held, Observation, Setting, short
from agent0.run.diagnosis.sizes import far_off, size_words, smaller
from agent0.stats.paired_tests import mcnemar

LEVEL = 0.05
"""Of an exact test on the validation tasks that changed (``mcnemar``): from it on a student is not called worse."""
UNLEARNT = "nothing was learned: "
WORSE = "the student is no better than at first: "
"""It lost validation tasks, though too few to say that it got worse."""
FLAT = (UNLEARNT, WORSE)
UNPROVEN = "no loss is proven"
"""In the gate's reason: the checkpoint scores lower by no more than chance explains."""
LR = "run.training.student.lr"
NAMED = 3
"""Settings of a recipe that are named, at most."""
FEWER = 2
"""Times as many iterations, tasks or attempts in the profile: that the run is small is told of."""
GATE = ("run.evaluation.gate", "run.evaluation.margin", "run.evaluation.calibration", "run.evaluation.benchmark_gate",
        LR, "run.training.student.")  # fmt: skip
KEYS = ("run.shuffle_rewards", "run.training.student.lr", "run.training.student.", "run.training.", "run.rewards.",
        "run.student.", "run.curriculum.", "run.teacher.", "run.verification.")  # fmt: skip


@cause(85)
def decline(case: Case) -> Cause | None:
    """Report that the gate refused every checkpoint, or that the last one is below the base, or no better than it."""
    made = [t for t in case.trainings if t.role == "student" and t.status != "requested"]
    refused = [t for t in made if t.status == "rejected"]
    held = list(case.validations())
    if len(refused) > 1 and len(refused) == len([t for t in made if t.samples]):
        told = f"no checkpoint was promoted: {refused[0].reason.partition(';')[0]}"
        seen = tuple(Observation(one.reason, checkpoint=one.checkpoint, event=one.requested) for one in refused[:3])
        return _found(case, refused[0].iteration, told, seen, GATE)
    if case.status != "finished" or len(held) < 2 or held[0].accuracy is None or held[-1].accuracy is None:
        return None
    if told := _worse(held[0], held[-1]):
        seen = (Observation(told, checkpoint=held[-1].checkpoint, event=held[-1].event),)
        return _found(case, held[-1].iteration, told, seen, KEYS)
    return None


def _worse(first: Held, last: Held) -> str:
    pairs = list(zip(first.outcomes, last.outcomes, strict=False))
    lost, gained = pairs.count(("1", "0")), pairs.count(("0", "1"))
    scores = f"validation {first.accuracy:.3f} first, {last.accuracy:.3f} last"
    if lost > gained and mcnemar(gained, lost) < LEVEL:
        return f"the student got worse: {scores}, {lost} tasks lost and {gained} gained"
    before, after = first.accuracy or 0.0, last.accuracy or 0.0
    if after > before:
        return ""
    return f"{UNLEARNT if after == before else WORSE}{scores}"


def _found(case: Case, iteration: int, told: str, seen: tuple[Observation, ...], keys: tuple[str, ...]) -> Cause:
    settings, few = case.changed(*keys), smaller(case)
    if settings and not any(FEWER * one.value <= one.other for one in few):
        few = ()
    if told.startswith(FLAT) and (far := tuple(one for one in settings if _recipe(one))):
        settings, few = far, ()
        told = f"{_recipe_words(far)}: {told.partition(': ')[2]}"
        told += f" (in {far[0].source} {' and '.join(short(one.other) for one in far[:NAMED])})"
    elif settings:
        told = f"{told} ({'; '.join(map(str, settings[:2]))})"
    told += f"; the run is smaller than its profile ({size_words(few)})" if few else ""
    mend = case.again(settings or few, values=None if settings or few else _other(case, told))
    step = (seen[0].checkpoint, seen[0].event) if seen else ("", 0)
    return Cause("decline", iteration, told, seen, mend, "", False, settings, *step)


def _recipe(one: Setting) -> bool:
    return one.key.startswith("run.training.student.") and far_off(one)


def _recipe_words(far: tuple[Setting, ...]) -> str:
    named = " and ".join(f"{one.key} of {short(one.value)}" for one in far[:NAMED])
    return f"{named} {'trains' if len(far) == 1 else 'train'} nothing"


def _other(case: Case, told: str) -> dict[str, Any]:
    """A setting to try another value of, where none differs: smaller steps; more tasks where nothing was learned or no
    loss is proven."""
    if told.startswith(FLAT) or UNPROVEN in told:
        return {"run.tasks": 2 * case.config.tasks}
    return {LR: case.value(LR) / 10}
