"""The student of a long task is paid for each step that is right, whatever becomes of the whole."""

from agent0.rewards import Facts, reward


@reward("subgoals", role="student", weight=0.2, reads=("credit",))
def subgoals(facts: Facts) -> float | None:
    """The share of subgoals that are right among those decided; None for a short task and where none was decided."""
    return None if facts["credit"] is None else float(facts["credit"])
