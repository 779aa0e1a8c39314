"""Detects an iteration of a ladder without a single task to attempt."""

from agent0.run.monitors import Finding, History, guard
from agent0.settings import GuardConfig


@guard
def supply(history: History, plan: GuardConfig) -> Finding | None:
    """Report that screening accepted none of the tasks that the teacher wrote: nothing can be learned from it."""
    current = history[-1]
    if "gate_wrong" not in current or current.get("accepted", 1.0) > 0:
        return None
    readable = f"; {current['readable']:.0%} of its texts hold a task" if "readable" in current else ""
    message = (
        f"none of the teacher's {current.get('tasks', 0):.0f} tasks was accepted{readable}: agent0 task list says why"
    )
    return Finding(message, {"accepted": 0.0}, "critical")
