"""The teacher is paid for tasks at the frontier of what the student can do."""

from agent0.curriculum import frontier_value
from agent0.rewards import Facts, reward


@reward("uncertainty", role="teacher", weight=1.0, reads=("solve_rate", "self_consistency", "token_confidence"))
def uncertainty(facts: Facts) -> float | None:
    """``1 - 2|p - 1/2|`` (arXiv 2511.16043, section 3.2), with p the verified solve rate, or the majority's share
    where nothing could be verified; None where the task was never attempted."""
    rate = facts["solve_rate"] if facts["solve_rate"] is not None else facts["self_consistency"]
    return None if rate is None else frontier_value(rate)
