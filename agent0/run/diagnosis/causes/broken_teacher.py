"""A training that ruined the teacher: what it writes afterwards holds no task, or is always the same."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Iteration, Training, blamed, of, short

MOST, LEAST = 0.5, 0.25
"""Share of texts without a task: above the first afterwards, below the second before."""
SAME = 0.8
"""Share of tasks refused as known afterwards."""
KEYS = ("run.training.teacher.lr", "run.training.teacher.")


@cause(40)
def broken_teacher(case: Case) -> Cause | None:
    """Report the training after which the teacher's texts hold no task any more, though they did before."""
    for before, current in zip(case.iterations, case.iterations[1:], strict=False):
        training = next(case.trained("teacher", current.number), None)
        if training is None or not before.screened or not current.screened or _share(before) > LEAST:
            continue
        settings = case.changed(*KEYS)
        same = settings and current.repeats >= SAME * current.screened > before.repeats
        if _share(current) >= MOST or same:
            return _broken(case, training, before, current)
    return None


def _share(iteration: Iteration) -> float:
    return iteration.unreadable / max(1, iteration.screened)


def _broken(case: Case, training: Training, before: Iteration, current: Iteration) -> Cause:
    settings = case.changed(*KEYS)
    lr = case.value(KEYS[0])
    if current.unreadable >= MOST * current.screened:
        what = f"{of(current.screened - current.unreadable, current.screened)} texts hold a task, after "
        what += f"{of(before.screened - before.unreadable, before.screened)} of {before.teacher}"
    else:
        what = f"{of(current.repeats, current.screened)} of its tasks are old ones"
    name = "learning rate" if not settings or settings[0].key == KEYS[0] else "training"
    conclusion = f"the teacher's {name} ruined {training.checkpoint}: {what} ({blamed(case, settings, KEYS[0])})"
    evidence = training.observations()
    evidence += current.observations_of("malformed", "duplicate", "similar")
    at = max(case.started, training.requested - 1) if training.requested else 0
    mend = case.again(settings, at) if settings else case.again((), at, {KEYS[0]: lr / 10})
    advice = "" if settings else f"A tenth of its learning rate ({short(lr)}) is the usual remedy."
    return Cause("broken_teacher", training.iteration, conclusion, evidence, mend, advice, settings=settings,
                 checkpoint=training.checkpoint, event=training.requested, explained=bool(settings))  # fmt: skip
