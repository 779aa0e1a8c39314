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
    for training in case.trainings:
        if not (what := _what(training)):
            continue
        keys = (f"run.training.{training.role}.lr", f"run.training.{training.role}.")
        settings = tuple(sorted(case.changed(*keys), key=lambda setting: not far_off(setting)))
        other = settings and settings[0].key != keys[0] and far_off(settings[0])
        conclusion = (
            f"the {training.role}'s {'recipe' if other else 'learning rate'}: the training of {training.checkpoint} "
        )
        conclusion += f"diverged, {what} ({blamed(case, settings, keys[0])})"
        evidence = (Observation(what, checkpoint=training.checkpoint, event=training.requested),)
        at, lr = max(case.started, training.requested - 1), case.value(keys[0])
        mend = case.again(settings, at) if settings else case.again((), at, {keys[0]: lr / 10})
        step = training.checkpoint, training.requested
        return Cause("diverged", training.iteration, conclusion, evidence, mend, "", False, settings, *step)
    return None


def _what(training: Training) -> str:
    skipped, steps = training.metrics.get("skipped", 0.0), training.metrics.get("steps", 0.0)
    if skipped and skipped >= NAN * (skipped + steps):
        return f"{skipped:.0f} of {skipped + steps:.0f} steps had no finite loss"
    loss = training.metrics.get("loss", 0.0)
    return f"its loss is {loss:.3g}" if not math.isfinite(loss) or abs(loss) >= LARGEST else ""
