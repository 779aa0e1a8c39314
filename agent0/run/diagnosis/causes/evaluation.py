"""Held-out tasks that measure nothing: none at all, all solved by the base, or none solved by any checkpoint."""

from dataclasses import replace
from typing import Any

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import NEVER, Case, Cause, Held, Observation, blamed, of
from agent0.run.diagnosis.causes.few_items import FEW
from agent0.settings.evaluation import EvaluationConfig

SOLVED = 0.95
KEYS = ("run.evaluation.levels", "run.evaluation.validation", "run.evaluation.seed", "run.evaluation.long",
        "run.evaluation.checked", "run.curriculum.levels", "run.curriculum.families",
        "run.curriculum.mastered", "run.student.")  # fmt: skip
OVER = ("finished", "failed", "paused")


@cause(80)
def evaluation(case: Case) -> Cause | None:
    """Report an evaluation without items, a base that solves all, or scores that are 0 throughout."""
    scores = list(case.validations())
    if cause := _empty(case):
        return cause
    if not scores or case.status not in OVER:
        return None
    first, last = scores[0], scores[-1]
    if (first.accuracy or 0.0) >= SOLVED:
        tasks = case.iterations[0] if case.iterations else None
        easy = tasks is not None and tasks.right >= SOLVED * max(1, tasks.decided)
        also = f", and {of(tasks.right, tasks.decided)} attempts of the first iteration are right" if tasks else ""
        conclusion = (
            f"the base already solves all: {first.accuracy:.0%} of validation{also}, so nothing is left to learn"
        )
        if not easy and first.n < FEW:
            return None  # that is too few to tell anything
        if not easy:
            conclusion = f"the held-out tasks show nothing: the base already solves {first.accuracy:.0%} of them"
        return _cause(case, conclusion, first, fatal=easy)
    if len(scores) > 1 and first.n >= FEW and not any(score.accuracy for score in scores):
        conclusion = f"the held-out tasks show nothing: every checkpoint solves 0 of {last.n}"
        return replace(
            _cause(case, conclusion, first, fatal=False), iteration=0
        )  # what ruins attempts ruins these, too
    return None


def _empty(case: Case) -> Cause | None:
    for score in case.scores:
        if score.done and not score.n and score.split in ("validation", "test"):
            return _cause(case, f"the evaluation set is empty: {score.evaluation} has no item", score, fatal=True)
    return None


def _cause(case: Case, conclusion: str, score: Held, *, fatal: bool) -> Cause:
    settings = case.changed(*KEYS)
    evidence = (Observation(f"{score.evaluation}: {score.n} items", checkpoint=score.checkpoint, event=score.event),)
    conclusion = f"{conclusion} ({blamed(case, settings, 'run.evaluation.levels', 'run.curriculum.levels')})"
    mend = case.again(settings, values=None if settings else _other(case, score))
    advice = "" if settings else "Or name other levels and families in run.evaluation and run.curriculum."
    return Cause(
        "evaluation", NEVER, conclusion, evidence, mend, advice, fatal, settings, score.checkpoint, score.event
    )


def _other(case: Case, score: Held) -> dict[str, Any]:
    """Settings to try other values of, where none differs: as many tasks as usual, or harder, or easier ones."""
    if not score.n:
        return {f"run.evaluation.{score.split}": EvaluationConfig.model_fields[score.split].default}
    levels = case.config.curriculum.levels
    level = max(levels) + (len(levels) == 1) if (score.accuracy or 0.0) >= SOLVED else min(levels)
    return {"run.evaluation.levels": [level], "run.curriculum.levels": [level]}
