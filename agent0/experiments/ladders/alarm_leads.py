"""Which alarms of a run stood before validation fell, and by how many trainings."""

from collections.abc import Sequence
from typing import Any

from agent0.experiments.ablation_results import Outcome
from agent0.experiments.ladders.costs import validations

FALL = 0.03
"""Of validation accuracy, below the base."""


def fallen_at(outcome: Outcome) -> int | None:
    """The first iteration whose student scores ``FALL`` less than the base on validation; None where none does."""
    scores = {score.iteration: score.accuracy for score in validations(outcome)}
    return min((n for n, accuracy in scores.items() if n >= 0 and scores.get(-1, 0.0) - accuracy >= FALL), default=None)


def lead_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """One row for each run and alarm that stood in it; one without an alarm for a run without.

    ``lead``: how many trainings lie between. An alarm of an iteration stands before that iteration's training, so one
    that begins in the iteration in which validation falls has a lead of 1; at 0 or below it was too late. None where
    validation never fell.
    """
    rows = []
    for one in outcomes:
        fell = fallen_at(one)
        told = {"arm": one.arm, "seed": one.seed, "validation_fell": fell}
        stood: list[tuple[str | None, int | None]] = [*sorted(one.alarms.items(), key=lambda pair: (pair[1], pair[0]))]
        for alarm, since in stood or [(None, None)]:
            lead = None if fell is None or since is None else fell + 1 - since
            rows.append({**told, "alarm": alarm, "since": since, "lead": lead})
    return rows
