"""Detects reward hacking: mean reward rises while held-out accuracy falls."""

from agent0.run.monitors import Finding, History, guard
from agent0.settings import GuardConfig

RISE = 0.1
"""Of the mean reward of the student, and of validation accuracy downwards, half of it."""


@guard
def drift(history: History, plan: GuardConfig) -> Finding | None:
    """Report that over the last ``patience`` iterations the student's mean reward rose while validation
    accuracy fell."""
    rows = [each for each in history[-plan.patience :] if "student_reward" in each and "validation" in each]
    if len(rows) < plan.patience:
        return None
    paid = rows[-1]["student_reward"] - rows[0]["student_reward"]
    right = rows[-1]["validation"] - rows[0]["validation"]
    if paid < RISE or right > -RISE / 2:
        return None
    facts = {"student_reward": paid, "validation": right}
    return Finding(f"the mean reward rose by {paid:.3f} while validation fell by {-right:.3f}", facts)
