"""A training that ruined the student: it answers no more, or solves far less than the one it was trained from."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Held, Iteration, Observation, Setting, Training, blamed, of, short
from agent0.stats.paired_tests import mcnemar

SILENT = 0.5
"""Of the share of attempts with an answer before: below it afterwards."""
FALLEN = 0.34
"""Of the share of right attempts, or of validation, before: below it afterwards."""
ENOUGH = 8
"""Attempts that a share is of."""
LOST = 4
"""Validation items lost, and four times as many as gained."""
LEVEL = 0.05
"""Of an exact test on the items that changed (``mcnemar``)."""
KEYS = ("run.training.student.lr", "run.training.student.")
ACTING = (
    "run.student.max_turns",
    "run.student.max_calls",
    "run.student.max_tokens",
    "run.student.temperature",
    "run.student.top_p",
    "run.student.tools",
    "run.student.",
)
"""Settings under which the attempts are made that it is trained on, and scored by."""


@cause(41)
def broken_student(case: Case) -> Cause | None:
    """Report the training after which the student answers no more, or has lost most of what it solved."""
    faults = [*_by_attempts(case), *_by_scores(case)]
    if not faults:
        return None
    training, what, more = min(faults, key=lambda fault: fault[0].iteration)
    settings = case.changed(*KEYS) or case.changed(*ACTING)
    conclusion = f"{_blames(settings)} ruined {training.checkpoint}: {what} ({blamed(case, settings, KEYS[0])})"
    evidence = training.observations()
    lr = case.value(KEYS[0])
    trained = not settings or settings[0].key.startswith(KEYS[1])
    at = max(case.started, training.requested - 1) if training.requested and trained else 0
    mend = case.again(settings, at) if settings else case.again((), at, {KEYS[0]: lr / 10})
    advice = "" if settings else f"A tenth of its learning rate ({short(lr)}) is the usual remedy."
    return Cause(
        "broken_student",
        training.iteration,
        conclusion,
        (*evidence, *more),
        mend,
        advice,
        settings=settings,
        checkpoint=training.checkpoint,
        event=training.requested,
        explained=bool(settings) and trained,
    )


def _blames(settings: tuple[Setting, ...]) -> str:
    if not settings or settings[0].key == KEYS[0]:
        return "the student's learning rate"
    return "the student's training" if settings[0].key.startswith(KEYS[1]) else "how the student attempts tasks"


Found = tuple[Training, str, tuple[Observation, ...]]


def _by_attempts(case: Case) -> list[Found]:
    faults: list[Found] = []
    for before, current in zip(case.iterations, case.iterations[1:], strict=False):
        training = next((t for t in case.trained("student", current.number) if t.checkpoint == current.student), None)
        if training is None or min(before.attempts, current.attempts) < ENOUGH:
            continue
        examples = tuple(observation for key, observation in current.examples.items() if key.startswith("end:"))
        if current.answered / current.attempts < SILENT * before.answered / before.attempts:
            what = f"{of(current.answered, current.attempts)} attempts give an answer, after "
            faults.append((training, f"{what}{of(before.answered, before.attempts)} of {before.student}", examples))
        elif _rate(current) < FALLEN * _rate(before) and before.right >= LOST:
            what = f"{of(current.right, current.decided)} attempts are right, after "
            faults.append((training, f"{what}{of(before.right, before.decided)} of {before.student}", ()))
    return faults


def _rate(iteration: Iteration) -> float:
    return iteration.right / max(1, iteration.decided)


def _by_scores(case: Case) -> list[Found]:
    faults: list[Found] = []
    scores = list(case.validations())
    checkpoints = {training.checkpoint: training for training in case.trainings if training.role == "student"}
    for index, current in enumerate(scores):
        best = max(scores[:index], key=lambda score: score.accuracy or 0.0, default=None)
        if best is not None and current.checkpoint in checkpoints and _fell(best, current):
            conclusion = (
                f"it scores {current.accuracy:.3f} on validation, after {best.accuracy:.3f} of {best.checkpoint}"
            )
            faults.append(
                (
                    checkpoints[current.checkpoint],
                    conclusion,
                    (Observation(conclusion, checkpoint=current.checkpoint, event=current.event),),
                )
            )
    return faults


def _fell(best: Held, current: Held) -> bool:
    if current.accuracy is None or not best.accuracy or current.accuracy > FALLEN * best.accuracy:
        return False
    pairs = list(zip(best.outcomes, current.outcomes, strict=False))
    lost, gained = pairs.count(("1", "0")), pairs.count(("0", "1"))
    return lost >= max(LOST, 4 * gained) and mcnemar(gained, lost) < LEVEL
