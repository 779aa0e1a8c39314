"""A validation set with so few items that its scores say nothing of a checkpoint."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Held, Observation, blamed
from agent0.settings.evaluation import EvaluationConfig

KEY = "run.evaluation.validation"
FEW = 8
"""Items. Where every one of five differs in one direction, a sign test has p 0.06; of eight hardly that many differ."""


@cause(59)
def few_items(case: Case) -> Cause | None:
    """Report a validation of fewer than ``FEW`` items after which no checkpoint is better than the base."""
    held = list(case.validations())
    made = [t for t in case.trainings if t.role == "student" and t.samples and t.status != "requested"]
    if len(held) < 2 or not made or not 0 < held[0].n < FEW:
        return None
    refused = all(t.status == "rejected" for t in made)
    if not refused and not _no_better(held[0], held[-1]):
        return None
    settings = tuple(one for one in case.changed(KEY) if (one.other or 0) > held[0].n)
    items = "1 item" if held[0].n == 1 else f"{held[0].n} items"
    told = f"the validation set is too small: {items} cannot tell one checkpoint from another "
    told += f"({blamed(case, settings, KEY)})"
    seen = tuple(
        Observation(f"{one.accuracy or 0.0:.3f} of {one.n}", checkpoint=one.checkpoint, event=one.event)
        for one in held[:3]
    )
    usual = None if settings else {KEY: EvaluationConfig.model_fields["validation"].default}
    mend = case.again(settings, values=usual)
    return Cause("few_items", made[0].iteration, told, seen, mend, "", False, settings, held[1].checkpoint,
                 held[1].event)  # fmt: skip


def _no_better(first: Held, last: Held) -> bool:
    return (last.accuracy or 0.0) <= (first.accuracy or 0.0)
