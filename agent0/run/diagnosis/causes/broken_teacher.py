"""A training that ruined the teacher: what it writes afterwards holds no task, or is always the same."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Iteration, Observation, Training, blamed, of, short

MOST, LEAST = 0.5, 0.25
"""Share of texts without a task: above the first afterwards, below the second before."""
SAME = 0.8
"""Share of tasks refused as known afterwards."""
KEYS = ("run.training.teacher.lr", "run.training.teacher.")


@cause(40)
def broken_teacher(case: Case) -> Cause | None:
    """Report the training after which the teacher's texts hold no task any more, though they did before."""
    for before, now in zip(case.iterations, case.iterations[1:], strict=False):
        made = next(case.trained("teacher", now.number), None)
        if made is None or not before.screened or not now.screened or _share(before) > LEAST:
            continue
        settings = case.changed(*KEYS)
        same = settings and now.known >= SAME * now.screened > before.known
        if _share(now) >= MOST or same:
            return _broken(case, made, before, now)
    return None


def _share(one: Iteration) -> float:
    return one.unreadable / max(1, one.screened)


def _broken(case: Case, made: Training, before: Iteration, now: Iteration) -> Cause:
    settings = case.changed(*KEYS)
    lr = case.value(KEYS[0])
    if now.unreadable >= MOST * now.screened:
        what = f"{of(now.screened - now.unreadable, now.screened)} texts hold a task, after "
        what += f"{of(before.screened - before.unreadable, before.screened)} of {before.teacher}"
    else:
        what = f"{of(now.known, now.screened)} of its tasks are old ones"
    name = "learning rate" if not settings or settings[0].key == KEYS[0] else "training"
    told = f"the teacher's {name} ruined {made.checkpoint}: {what} ({blamed(case, settings, KEYS[0])})"
    loss = [f"loss {made.metrics['loss']:.3g} in its training"] if "loss" in made.metrics else []
    seen = tuple(
        Observation(one, checkpoint=made.checkpoint, event=made.requested) for one in [*loss, made.reason] if one
    )
    seen += tuple(now.examples[name] for name in ("malformed", "duplicate", "similar") if name in now.examples)
    at = max(case.started, made.requested - 1) if made.requested else 0
    mend = case.again(settings, at) if settings else case.again((), at, {KEYS[0]: lr / 10})
    advice = "" if settings else f"A tenth of its learning rate ({short(lr)}) is the usual remedy."
    return Cause("broken_teacher", made.iteration, told, seen, mend, advice, settings=settings,
                 checkpoint=made.checkpoint, event=made.requested, explained=bool(settings))  # fmt: skip
