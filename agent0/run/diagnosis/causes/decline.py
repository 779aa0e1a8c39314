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
KEYS = ("run.training.student.lr", "run.training.student.", "run.training.", "run.rewards.",
        "run.student.", "run.curriculum.", "run.teacher.", "run.verification.")  # fmt: skip


@cause(85)
def decline(case: Case) -> Cause | None:
    """Report that the gate refused every checkpoint, or that the last one is below the base, or no better than it."""
    training = [t for t in case.trainings if t.role == "student" and t.status != "requested"]
    refused = [t for t in training if t.status == "rejected"]
    scores = list(case.validations())
    if len(refused) > 1 and len(refused) == len([t for t in training if t.samples]):
        conclusion = f"no checkpoint was promoted: {refused[0].reason.partition(';')[0]}"
        evidence = tuple(
            Observation(training.reason, checkpoint=training.checkpoint, event=training.requested)
            for training in refused[:3]
        )
        return _cause(case, refused[0].iteration, conclusion, evidence, GATE)
    if case.status != "finished" or len(scores) < 2 or scores[0].accuracy is None or scores[-1].accuracy is None:
        return None
    if conclusion := _worse(scores[0], scores[-1]):
        evidence = (Observation(conclusion, checkpoint=scores[-1].checkpoint, event=scores[-1].event),)
        return _cause(case, scores[-1].iteration, conclusion, evidence, KEYS)
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


def _cause(
    case: Case, iteration: int, conclusion: str, evidence: tuple[Observation, ...], keys: tuple[str, ...]
) -> Cause:
    settings, few = case.changed(*keys), smaller(case)
    if settings and not any(FEWER * setting.value <= setting.other for setting in few):
        few = ()
    if conclusion.startswith(FLAT) and (far := tuple(setting for setting in settings if _recipe(setting))):
        settings, few = far, ()
        conclusion = f"{_recipe_words(far)}: {conclusion.partition(': ')[2]}"
        conclusion += f" (in {far[0].source} {' and '.join(short(setting.other) for setting in far[:NAMED])})"
    elif settings:
        conclusion = f"{conclusion} ({'; '.join(map(str, settings[:2]))})"
    conclusion += f"; the run is smaller than its profile ({size_words(few)})" if few else ""
    mend = case.again(settings or few, values=None if settings or few else _other(case, conclusion))
    step = (evidence[0].checkpoint, evidence[0].event) if evidence else ("", 0)
    return Cause("decline", iteration, conclusion, evidence, mend, "", False, settings, *step)


def _recipe(setting: Setting) -> bool:
    return setting.key.startswith("run.training.student.") and far_off(setting)


def _recipe_words(far: tuple[Setting, ...]) -> str:
    named = " and ".join(f"{setting.key} of {short(setting.value)}" for setting in far[:NAMED])
    return f"{named} {'trains' if len(far) == 1 else 'train'} nothing"


def _other(case: Case, conclusion: str) -> dict[str, Any]:
    """A setting to try another value of, where none differs: smaller steps; more tasks where nothing was learned or no
    loss is proven."""
    if conclusion.startswith(FLAT) or UNPROVEN in conclusion:
        return {"run.tasks": 2 * case.config.tasks}
    return {LR: case.value(LR) / 10}
