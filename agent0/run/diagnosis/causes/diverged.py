"""A training that diverged, whatever was made with its checkpoint afterwards."""

import math

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Observation, Training, blamed
from agent0.run.diagnosis.sizes import far_off

LARGEST = 20.0
"""Of a loss, in size: guessing a token of 50,000 at random has 10.8 nats."""
NAN = 0.5
"""Share of steps without a finite loss."""


@cause(43)
def diverged(case: Case) -> Cause | None:
    """Report the first training whose loss is no number, or far larger than guessing tokens at random would have."""
    for made in case.trainings:
        if not (what := _what(made)):
            continue
        keys = (f"run.training.{made.role}.lr", f"run.training.{made.role}.")
        settings = tuple(sorted(case.changed(*keys), key=lambda one: not far_off(one)))
        other = settings and settings[0].key != keys[0] and far_off(settings[0])
        told = f"the {made.role}'s {'recipe' if other else 'learning rate'}: the training of {made.checkpoint} "
        told += f"diverged, {what} ({blamed(case, settings, keys[0])})"
        seen = (Observation(what, checkpoint=made.checkpoint, event=made.requested),)
        at, lr = max(case.started, made.requested - 1), case.value(keys[0])
        mend = case.again(settings, at) if settings else case.again((), at, {keys[0]: lr / 10})
        step = made.checkpoint, made.requested
        return Cause("diverged", made.iteration, told, seen, mend, "", False, settings, *step)
    return None


def _what(made: Training) -> str:
    skipped, steps = made.metrics.get("skipped", 0.0), made.metrics.get("steps", 0.0)
    if skipped and skipped >= NAN * (skipped + steps):
        return f"{skipped:.0f} of {skipped + steps:.0f} steps had no finite loss"
    loss = made.metrics.get("loss", 0.0)
    return f"its loss is {loss:.3g}" if not math.isfinite(loss) or abs(loss) >= LARGEST else ""
