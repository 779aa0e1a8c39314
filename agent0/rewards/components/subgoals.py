"""The student's reward for the right steps of a long task, whether or not the final answer is right."""

from agent0.rewards import Features, reward


@reward("subgoals", role="student", weight=0.2, reads=("credit",))
def subgoals(features: Features) -> float | None:
    """The share of subgoals that are right among those decided; None for a short task and where none was decided."""
    return None if features["credit"] is None else float(features["credit"])
