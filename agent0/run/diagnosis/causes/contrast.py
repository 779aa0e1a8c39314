"""Nothing to learn from, though there are tasks and verdicts: all are solved, none is, or all rewards are the same."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Iteration, Observation, Setting, Training, blamed, of

NEARLY = 0.9
CURRICULUM = ("run.curriculum.levels", "run.curriculum.families", "run.curriculum.mastered", "run.curriculum.ahead",
              "run.curriculum.kind", "run.student.model", "run.student.")  # fmt: skip
BAND = ("run.curriculum.band",)
REWARDS = ("run.rewards.weights", "run.rewards.", "run.training.student.objective")


@cause(70)
def contrast(case: Case) -> Cause | None:
    """Report the first iteration with verdicts after which there was nothing to train the student on."""
    for made in case.trainings:
        one = next((i for i in case.iterations if i.number == made.iteration), None)
        if made.role == "student" and made.status == "unchanged" and one is not None and one.decided:
            return _found(case, one, made)
    return None


def _found(case: Case, one: Iteration, made: Training) -> Cause:
    what, keys, example = _words(case, one, made)
    settings: tuple[Setting, ...] = case.changed(*keys)
    told = f"no contrast, so nothing to learn from: {what} ({blamed(case, settings, keys[0])})"
    skipped = ", ".join(f"{name} {n:,}" for name, n in sorted(made.skipped.items()))
    seen: tuple[Observation, ...] = (
        Observation(f"left out of its training: {skipped}", checkpoint=made.checkpoint, event=made.requested),
    )
    seen += tuple(one.examples[key] for key in (example,) if key in one.examples)
    mend = case.again(settings) if settings else f"agent0 curriculum show {case.run}"
    advice = "" if settings else "Other levels or families (run.curriculum), or more attempts a task."
    return Cause("contrast", one.number, told, seen, mend, advice, settings=settings, checkpoint=made.checkpoint,
                 event=made.requested, fatal=not case.recovered(one.number))  # fmt: skip


def _words(case: Case, one: Iteration, made: Training) -> tuple[str, tuple[str, ...], str]:
    """What is the same everywhere, the settings that may be to blame, and what shows it."""
    if case.config.training.student.objective == "none":
        return "the student's objective trains nothing", ("run.training.student.objective",), "wrong"
    tasks = one.all_right + one.all_wrong + one.mixed
    if one.all_wrong >= NEARLY * tasks:
        return f"no attempt solves {of(one.all_wrong, tasks)} tasks: too hard", CURRICULUM, "wrong"
    if one.all_right >= NEARLY * tasks:
        return f"all attempts solve {of(one.all_right, tasks)} tasks: too easy", CURRICULUM, "right"
    if made.skipped.get("off_frontier", 0) >= max(made.skipped.values(), default=0):
        inside = f"{one.mixed:,} tasks are solved by some attempts and not by others"
        return f"no task's solve rate is inside the learnable band ({inside})", BAND, "wrong"
    return "the rewards of a task's attempts are all the same", REWARDS, "wrong"
