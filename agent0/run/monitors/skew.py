"""Detects a teacher whose text collapses onto few digits while its rewards do not fall.

Strings of repeated digits are harder than others of their length, so they are rewarded as tasks at the student's edge
are, and teach less. Uniform digits have 3.32 bits.
"""

from agent0.run.monitors import Finding, History, guard
from agent0.settings import GuardConfig

LEAST = 2.9
"""Bits."""
LOST = 0.25
"""Bits lost since the first iteration."""


@guard
def skew(history: History, plan: GuardConfig) -> Finding | None:
    """Report that the digits of tasks have lost much of their entropy, and that the tasks are worth no less for
    training than ``patience`` iterations before."""
    rows = [each for each in history if "digit_entropy" in each and "learnable" in each]
    if not rows or "digit_entropy" not in history[-1] or "learnable" not in history[-1]:
        return None
    current, first, before = rows[-1], rows[0], rows[max(0, len(rows) - plan.patience)]
    bits = current["digit_entropy"]
    if bits >= LEAST or first["digit_entropy"] - bits < LOST or current["learnable"] < before["learnable"]:
        return None
    facts = {"digit_entropy": bits, "first": first["digit_entropy"], "learnable": current["learnable"]}
    return Finding(
        f"the teacher's digits have {bits:.2f} bits, after {first['digit_entropy']:.2f}, and its rewards are no lower",
        facts,
    )
