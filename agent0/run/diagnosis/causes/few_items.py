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
    scores = list(case.validations())
    trained = [t for t in case.trainings if t.role == "student" and t.samples and t.status != "requested"]
    if len(scores) < 2 or not trained or not 0 < scores[0].n < FEW:
        return None
    refused = all(t.status == "rejected" for t in trained)
    if not refused and not _no_better(scores[0], scores[-1]):
        return None
    settings = tuple(setting for setting in case.changed(KEY) if (setting.other or 0) > scores[0].n)
    items = "1 item" if scores[0].n == 1 else f"{scores[0].n} items"
    conclusion = f"the validation set is too small: {items} cannot tell one checkpoint from another "
    conclusion += f"({blamed(case, settings, KEY)})"
    evidence = tuple(
        Observation(f"{score.accuracy or 0.0:.3f} of {score.n}", checkpoint=score.checkpoint, event=score.event)
        for score in scores[:3]
    )
    usual = None if settings else {KEY: EvaluationConfig.model_fields["validation"].default}
    mend = case.again(settings, values=usual)
    return Cause(
        "few_items",
        trained[0].iteration,
        conclusion,
        evidence,
        mend,
        "",
        False,
        settings,
        scores[1].checkpoint,
        scores[1].event,
    )


def _no_better(first: Held, last: Held) -> bool:
    return (last.accuracy or 0.0) <= (first.accuracy or 0.0)
