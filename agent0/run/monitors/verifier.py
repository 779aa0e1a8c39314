"""Detects a ladder's verifier that is wrong about answers it should know, or says one thing and then another."""

from agent0.run.monitors import Finding, History, guard
from agent0.settings import GuardConfig


@guard
def verifier(history: History, plan: GuardConfig) -> Finding | None:
    """Report any canary that the verifier misjudges, or judges in two ways: a check is exact, so none may be."""
    faults = history[-1].get("verifier_faults", 0.0)
    if not faults:
        return None
    message = f"the ladder's verifier is wrong about {faults:.0%} of the answers that are known, or contradicts itself"
    return Finding(message, {"verifier_faults": faults}, "critical")
