"""Detects a gate that lets wrong answers into training, or keeps right ones out, on answers that are known."""

from agent0.run.monitors import Finding, History, guard
from agent0.settings import GuardConfig

LEAK = 0.03
"""Share of known wrong answers accepted: two of 64."""
LOSS = 0.1
"""Share of known right answers refused."""


@guard
def gate(history: History, plan: GuardConfig) -> Finding | None:
    """Report that known wrong answers pass the gate, or that many known right ones do not. It holds before anything is
    trained on what the gate accepted."""
    current = history[-1]
    wrong, right = current.get("gate_wrong", 0.0), current.get("gate_right", 1.0)
    facts = {"gate_wrong": wrong, "gate_right": right}
    if wrong >= LEAK:
        return Finding(f"the gate accepts {wrong:.0%} of answers that are known to be wrong", facts, "critical")
    if 1 - right >= LOSS:
        return Finding(f"the gate refuses {1 - right:.0%} of answers that are known to be right", facts)
    return None
