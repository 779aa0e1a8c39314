"""The teacher is paid for tasks unlike those accepted before."""

from agent0.rewards import Facts, reward


@reward("novelty", role="teacher", weight=0.2, reads=("novelty",))
def novelty(facts: Facts) -> float | None:
    """1 - highest cosine similarity to the archive, clipped to [0, 1]; None where it was not measured."""
    return None if facts["novelty"] is None else max(0.0, min(1.0, facts["novelty"]))
