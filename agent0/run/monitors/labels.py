"""Checks the majority answers that a run learns from where nothing computes the answer, on tasks where something does.

Published runs lose them: 79, 69, 63 % right over three iterations (R-Zero, arXiv 2508.05004, section 4).
"""

from agent0.run.monitors import Finding, History, guard_of, known_values
from agent0.settings import GuardConfig, RunConfig

LOWEST = 0.5
LOSS = 0.15


def learns_from_majority(config: RunConfig) -> bool:
    """Whether a majority of answers decides what the student learns: elsewhere its mistakes teach nothing."""
    return config.training.student.gate == "majority" or config.verification.unchecked == "self_consistency"


@guard_of(learns_from_majority)
def labels(history: History, plan: GuardConfig) -> Finding | None:
    """Report that fewer than half of the majority answers are right, or many fewer than in the best iteration."""
    values = known_values(history, "label_accuracy")
    if not values or "label_accuracy" not in history[-1]:
        return None
    current, best = values[-1], max(values)
    facts = {"label_accuracy": current, "best": best}
    if current < LOWEST:
        return Finding(f"{current:.0%} of majority answers are right: labels by majority would teach mistakes", facts)
    if best - current > LOSS:
        return Finding(f"majority answers are right in {current:.0%}, after {best:.0%}: labels decay", facts)
    return None
