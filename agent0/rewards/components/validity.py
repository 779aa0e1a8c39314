"""The teacher's penalty for rejected tasks."""

from agent0.rewards import Features, reward


@reward("validity", role="teacher", weight=0.5, reads=("accepted", "reason"))
def validity(features: Features) -> float | None:
    """0 for an accepted task, -1 for a rejected one.

    None where nothing was decided, and for a task that is reserved for held-out sets, which the teacher cannot know.
    """
    undecided = features["accepted"] is None or features["reason"] == "reserved"
    return None if undecided else float(features["accepted"]) - 1.0
