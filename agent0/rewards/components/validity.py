"""Validity comes before difficulty: a task that was rejected costs, whatever else it is."""

from agent0.rewards import Facts, reward


@reward("validity", role="teacher", weight=0.5, reads=("accepted", "reason"))
def validity(facts: Facts) -> float | None:
    """0 for an accepted task, -1 for a rejected one.

    None where nothing was decided, and for a task that is kept for held-out sets, which nobody could know.
    """
    undecided = facts["accepted"] is None or facts["reason"] == "reserved"
    return None if undecided else float(facts["accepted"]) - 1.0
