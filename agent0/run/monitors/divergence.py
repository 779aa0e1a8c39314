"""Detects that teacher and student diverge: tasks that are all too hard, or all too easy, teach neither."""

from agent0.run.monitors import Finding, History, guard
from agent0.settings import GuardConfig

HARD, EASY = 0.05, 0.95


@guard
def divergence(history: History, plan: GuardConfig) -> Finding | None:
    """Report that the mean solve rate lay at one end in each of the last ``patience`` iterations."""
    rates = [each["solve_rate"] for each in history[-plan.patience :] if "solve_rate" in each]
    if len(rates) < plan.patience:
        return None
    facts = {"solve_rate": rates[-1]}
    if max(rates) < HARD:
        return Finding(f"the teacher's tasks are beyond the student: it solves {rates[-1]:.0%}", facts)
    if min(rates) > EASY:
        return Finding(f"the teacher's tasks are beneath the student: it solves {rates[-1]:.0%}", facts)
    return None
