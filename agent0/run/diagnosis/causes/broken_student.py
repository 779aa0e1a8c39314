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
ACTING = ("run.student.max_turns", "run.student.max_calls", "run.student.max_tokens", "run.student.temperature",
          "run.student.top_p", "run.student.tools", "run.student.")  # fmt: skip
"""Settings under which the attempts are made that it is trained on, and scored by."""


@cause(41)
def broken_student(case: Case) -> Cause | None:
    """Report the training after which the student answers no more, or has lost most of what it solved."""
    found = [*_by_attempts(case), *_by_scores(case)]
    if not found:
        return None
    made, what, more = min(found, key=lambda held: held[0].iteration)
    settings = case.changed(*KEYS) or case.changed(*ACTING)
    told = f"{_blames(settings)} ruined {made.checkpoint}: {what} ({blamed(case, settings, KEYS[0])})"
    loss = [f"loss {made.metrics['loss']:.3g} in its training"] if "loss" in made.metrics else []
    seen = tuple(
        Observation(one, checkpoint=made.checkpoint, event=made.requested) for one in [*loss, made.reason] if one
    )
    lr = case.value(KEYS[0])
    trained = not settings or settings[0].key.startswith(KEYS[1])
    at = max(case.started, made.requested - 1) if made.requested and trained else 0
    mend = case.again(settings, at) if settings else case.again((), at, {KEYS[0]: lr / 10})
    advice = "" if settings else f"A tenth of its learning rate ({short(lr)}) is the usual remedy."
    return Cause("broken_student", made.iteration, told, (*seen, *more), mend, advice, settings=settings,
                 checkpoint=made.checkpoint, event=made.requested, explained=bool(settings) and trained)  # fmt: skip


def _blames(settings: tuple[Setting, ...]) -> str:
    if not settings or settings[0].key == KEYS[0]:
        return "the student's learning rate"
    return "the student's training" if settings[0].key.startswith(KEYS[1]) else "how the student attempts tasks"


Found = tuple[Training, str, tuple[Observation, ...]]


def _by_attempts(case: Case) -> list[Found]:
    found: list[Found] = []
    for before, now in zip(case.iterations, case.iterations[1:], strict=False):
        made = next((t for t in case.trained("student", now.number) if t.checkpoint == now.student), None)
        if made is None or min(before.attempts, now.attempts) < ENOUGH:
            continue
        examples = tuple(one for key, one in now.examples.items() if key.startswith("end:"))
        if now.answered / now.attempts < SILENT * before.answered / before.attempts:
            what = f"{of(now.answered, now.attempts)} attempts give an answer, after "
            found.append((made, f"{what}{of(before.answered, before.attempts)} of {before.student}", examples))
        elif _rate(now) < FALLEN * _rate(before) and before.right >= LOST:
            what = f"{of(now.right, now.decided)} attempts are right, after "
            found.append((made, f"{what}{of(before.right, before.decided)} of {before.student}", ()))
    return found


def _rate(one: Iteration) -> float:
    return one.right / max(1, one.decided)


def _by_scores(case: Case) -> list[Found]:
    found: list[Found] = []
    held = list(case.validations())
    made = {one.checkpoint: one for one in case.trainings if one.role == "student"}
    for place, now in enumerate(held):
        best = max(held[:place], key=lambda one: one.accuracy or 0.0, default=None)
        if best is not None and now.checkpoint in made and _fell(best, now):
            told = f"it scores {now.accuracy:.3f} on validation, after {best.accuracy:.3f} of {best.checkpoint}"
            found.append((made[now.checkpoint], told, (Observation(told, checkpoint=now.checkpoint, event=now.event),)))
    return found


def _fell(best: Held, now: Held) -> bool:
    if now.accuracy is None or not best.accuracy or now.accuracy > FALLEN * best.accuracy:
        return False
    pairs = list(zip(best.outcomes, now.outcomes, strict=False))
    lost, gained = pairs.count(("1", "0")), pairs.count(("0", "1"))
    return lost >= max(LOST, 4 * gained) and mcnemar(gained, lost) < LEVEL
