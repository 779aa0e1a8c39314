"""Nothing to learn from, though there are tasks and verdicts: all are solved, none is, or all rewards are the same."""

from typing import Any

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Iteration, Observation, Setting, Training, blamed, of
from agent0.settings.training import RecipeConfig
from agent0.training.selection import left_out

NEARLY = 0.9
CURRICULUM = (
    "run.curriculum.levels",
    "run.curriculum.families",
    "run.curriculum.mastered",
    "run.curriculum.ahead",
    "run.curriculum.kind",
    "run.student.model",
    "run.student.",
)
BAND = ("run.curriculum.band",)
SAMPLED = ("run.student.temperature", "run.student.top_p", "run.student.")
COMPARING = frozenset({"off_frontier", "no_contrast", "no_spread"})
"""Why attempts were left out that compare them with the others at their task."""
TRIES = 8
"""Attempts a task that tell solve rates apart."""
REWARDS = ("run.rewards.weights", "run.rewards.", "run.training.student.objective")


@cause(70)
def contrast(case: Case) -> Cause | None:
    """Report the first iteration with verdicts after which there was nothing to train the student on, unless the
    student has learned all the same."""
    for training in case.trainings:
        iteration = next((i for i in case.iterations if i.number == training.iteration), None)
        unlearnt = training.role == "student" and training.status == "unchanged"
        if unlearnt and iteration is not None and iteration.decided and not _harmless(case, iteration):
            return _cause(case, iteration, training)
    return None


def _harmless(case: Case, iteration: Iteration) -> bool:
    """Whether the student ends above the untrained one in a run that goes well, and was trained again afterwards or
    had nothing left to learn."""
    scores = [score.accuracy or 0.0 for score in case.validations()]
    if case.status not in ("running", "finished") or len(scores) < 2 or scores[-1] <= scores[0]:
        return False
    solved = iteration.all_right >= NEARLY * (iteration.all_right + iteration.all_wrong + iteration.mixed)
    return solved or case.recovered(iteration.number)


def _cause(case: Case, iteration: Iteration, training: Training) -> Cause:
    what, keys, example = _diagnosis(case, iteration, training)
    settings: tuple[Setting, ...] = case.changed(*keys)
    conclusion = f"no contrast, so nothing to learn from: {what} ({blamed(case, settings, keys[0])})"
    evidence: tuple[Observation, ...] = (
        Observation(
            f"left out of its training: {left_out(training.skipped)}",
            checkpoint=training.checkpoint,
            event=training.requested,
        ),
    )
    evidence += iteration.observations_of(example)
    mend = case.again(settings, values=None if settings else _other(case, iteration, keys))
    advice = "" if settings else "Or other levels and families (run.curriculum), or more attempts a task."
    return Cause(
        "contrast",
        iteration.number,
        conclusion,
        evidence,
        mend,
        advice,
        settings=settings,
        checkpoint=training.checkpoint,
        event=training.requested,
        fatal=not case.recovered(iteration.number),
    )


def _diagnosis(case: Case, iteration: Iteration, training: Training) -> tuple[str, tuple[str, ...], str]:
    """What is the same everywhere, the settings that may be to blame, and what shows it."""
    if case.config.attempts == 1 and not COMPARING.isdisjoint(training.skipped):
        return "one attempt a task has nothing to be compared with", ("run.attempts",), ""
    if case.config.training.student.objective == "none":
        return "the student's objective trains nothing", ("run.training.student.objective",), "wrong"
    tasks = iteration.all_right + iteration.all_wrong + iteration.mixed
    if iteration.all_wrong >= NEARLY * tasks:
        return f"no attempt solves {of(iteration.all_wrong, tasks)} tasks: too hard", CURRICULUM, "wrong"
    if iteration.all_right >= NEARLY * tasks:
        return f"all attempts solve {of(iteration.all_right, tasks)} tasks: too easy", CURRICULUM, "right"
    if iteration.alike >= NEARLY * iteration.repeated > 0:
        return f"at {of(iteration.alike, iteration.repeated)} tasks all attempts give the same answer", SAMPLED, ""
    if training.skipped.get("off_frontier", 0) >= max(training.skipped.values(), default=0):
        inside = f"{iteration.mixed:,} tasks are solved by some attempts and not by others"
        return f"no task's solve rate is inside the learnable band ({inside})", BAND, "wrong"
    return "the rewards of a task's attempts are all the same", REWARDS, "wrong"


def _other(case: Case, iteration: Iteration, keys: tuple[str, ...]) -> dict[str, Any]:
    """A setting to try another value of, where none differs from elsewhere."""
    levels = case.config.curriculum.levels
    if keys is SAMPLED:
        return {keys[0]: 1.0, "run.student.top_p": 1.0}
    if keys is CURRICULUM and len(levels) > 1:
        return {keys[0]: [max(levels) if iteration.all_right > iteration.all_wrong else min(levels)]}
    if keys[0] == "run.training.student.objective":
        return {keys[0]: RecipeConfig.model_fields["objective"].default}
    return {"run.attempts": max(TRIES, 2 * case.config.attempts)}
