"""Detects a student that falls back on its ladder, by its own attempts alone."""

from agent0.run.monitors import Finding, History, guard, known_values
from agent0.settings import GuardConfig

STEPS = 2
"""Levels below the best so far, in two iterations in a row: one may fall back by chance."""
FORGOTTEN = 0.1
"""Loss of accuracy at levels that its base was taught, where these are attempted."""


@guard
def retreat(history: History, plan: GuardConfig) -> Finding | None:
    """Report that the highest level half solved lies ``STEPS`` below the best before it, or that levels the base was
    taught are solved less often than when they were first attempted."""
    current, heights = history[-1], known_values(history, "frontier_level")
    if "frontier_level" in current and max(heights) - max(heights[-2:]) >= STEPS:
        facts = {"frontier_level": heights[-1], "best": max(heights)}
        return Finding(f"the student's frontier fell back to level {heights[-1]:.0f}, from {max(heights):.0f}", facts)
    rates = known_values(history, "taught_rate")
    if "taught_rate" in current and rates[0] - rates[-1] >= FORGOTTEN:
        facts = {"taught_rate": rates[-1], "first": rates[0]}
        return Finding(f"levels its base was taught are solved {rates[-1]:.0%}, after {rates[0]:.0%}", facts)
    return None
