"""A policy that has collapsed says one thing, says it at once, says nothing, or is certain of all it says."""

from collections.abc import Mapping

from agent0.guards import Finding, History, guard
from agent0.settings import GuardConfig

SILENT = 0.5
"""Share of attempts with an answer."""
SHRUNK = 0.25
"""Of what it was in the first iteration that was measured: tokens an attempt, surprise a token."""
UNIFORM = 0.5
"""Share of all tasks that one family may have, where several were asked for in the first iteration."""


@guard
def collapse(history: History, plan: GuardConfig) -> Finding | None:
    """Silence, brevity, certainty without being right, or one family for all."""
    now = history[-1]
    first = next((each for each in history if "tokens" in each), now)
    if now.get("answered", 1.0) < SILENT:
        return Finding(f"{now['answered']:.0%} of attempts give an answer", {"answered": now["answered"]}, "critical")
    if _shrunk(first, now, "tokens"):
        facts = {"tokens": now["tokens"], "first": first["tokens"]}
        return Finding(f"attempts have {now['tokens']:.0f} tokens, after {first['tokens']:.0f}", facts)
    if _shrunk(first, now, "surprise") and now.get("solve_rate", 1.0) < first.get("solve_rate", 0.0):
        facts = {"surprise": now["surprise"], "first": first["surprise"]}
        return Finding("the student is far surer of its tokens than it was, and is right less often", facts)
    if now.get("largest_family", 0.0) > max(UNIFORM, 2 * first.get("largest_family", 0.0)):
        facts = {"largest_family": now["largest_family"]}
        return Finding(f"{now['largest_family']:.0%} of tasks are of one family", facts)
    return None


def _shrunk(first: Mapping[str, float], now: Mapping[str, float], name: str) -> bool:
    return name in first and name in now and now[name] < SHRUNK * first[name]
