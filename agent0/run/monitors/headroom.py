"""Detects a ladder on which nothing is left to climb: the student already solves what is asked of it and beyond."""

from agent0.run.monitors import Finding, History, guard
from agent0.settings import GuardConfig

SOLVED = 0.95


@guard
def headroom(history: History, plan: GuardConfig) -> Finding | None:
    """Report that from the first iteration on nearly all validation tasks and nearly all tasks asked for on a ladder
    were solved: what follows would be a flat line for another reason than that nothing was learned."""
    shares = [(each.get("validation", 0.0), each.get("solve_rate", 0.0)) for each in history]
    if "gate_wrong" not in history[-1] or min(min(both) for both in shares) < SOLVED:
        return None
    validation, solved = shares[-1]
    message = f"the base already solves the ladder: {validation:.0%} of validation, {solved:.0%} of its tasks"
    return Finding(f"{message}; name higher levels in run.curriculum and run.evaluation", {"validation": validation})
