"""Detects policy collapse: no answers, very short ones, certainty without accuracy, one family only, or no readable
tasks."""

from collections.abc import Mapping

from agent0.run.monitors import Finding, History, guard
from agent0.settings import GuardConfig

SILENT = 0.5
"""Share of attempts with an answer, and of a teacher's texts with a task."""
SHRUNK = 0.25
"""Of what it was in the first iteration that was measured: tokens an attempt, surprise a token."""
WORSE = {
    "surprise": (SHRUNK, "the student is far surer of its tokens than it was"),
    "variety": (0.5, "the student gives far fewer different answers to a task than it did"),
}
"""What may shrink while a student gets better, and below which share of its first value not while it gets worse.
Variety cannot fall below one answer a task."""
UNIFORM = 0.5
"""Share of all tasks that one family may have, where several were asked for in the first iteration."""


@guard
def collapse(history: History, plan: GuardConfig) -> Finding | None:
    """Report silence, brevity, certainty without being right, text that is no task, or one family for all tasks."""
    current = history[-1]
    if current.get("readable", 1.0) < SILENT:
        conclusion = f"{current['readable']:.0%} of the teacher's texts hold a task"
        return Finding(conclusion, {"readable": current["readable"]}, "critical")
    first = next((each for each in history if "tokens" in each), current)
    if current.get("answered", 1.0) < SILENT:
        return Finding(
            f"{current['answered']:.0%} of attempts give an answer", {"answered": current["answered"]}, "critical"
        )
    if _shrunk(first, current, "tokens"):
        facts = {"tokens": current["tokens"], "first": first["tokens"]}
        return Finding(f"attempts have {current['tokens']:.0f} tokens, after {first['tokens']:.0f}", facts)
    fell = current.get("solve_rate", 1.0) < first.get("solve_rate", 0.0)
    for name, (least, conclusion) in WORSE.items():
        if fell and _shrunk(first, current, name, least):
            return Finding(f"{conclusion}, and is right less often", {name: current[name], "first": first[name]})
    if current.get("largest_family", 0.0) > max(UNIFORM, 2 * first.get("largest_family", 0.0)):
        facts = {"largest_family": current["largest_family"]}
        return Finding(f"{current['largest_family']:.0%} of tasks are of one family", facts)
    return None


def _shrunk(first: Mapping[str, float], current: Mapping[str, float], name: str, least: float = SHRUNK) -> bool:
    return name in first and name in current and current[name] < least * first[name]
