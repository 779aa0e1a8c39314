"""Detects that validation accuracy no longer rises."""

from agent0.run.monitors import Finding, History, guard, known_values
from agent0.settings import GuardConfig


@guard
def plateau(history: History, plan: GuardConfig) -> Finding | None:
    """Report that validation of the last ``patience`` iterations never passed the best before them."""
    values = known_values(history, "validation")
    if len(values) <= plan.patience:
        return None
    before, since = max(values[: -plan.patience]), max(values[-plan.patience :])
    if since > before:
        return None
    facts = {"best_before": before, "best_since": since}
    return Finding(f"validation has not risen above {before:.3f} for {plan.patience} iterations", facts, "info")
