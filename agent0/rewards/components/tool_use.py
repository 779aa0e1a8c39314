"""Rewards for useful tool calls: those that ran, computed something, and that the answer rests on."""

from agent0.rewards import Features, reward


@reward("tool_use", role="student", weight=0.1, reads=("rests_on_call", "correct"))
def tool_use(features: Features) -> float | None:
    """1 where a right answer was printed by a useful call that had not been given it, else 0; None where undecided."""
    return None if features["correct"] is None else float(features["correct"] and bool(features["rests_on_call"]))


@reward("tool_demand", role="teacher", weight=0.1, reads=("useful_calls",))
def tool_demand(features: Features) -> float | None:
    """Mean useful calls per attempt, capped at 4 and scaled to [0, 1] (arXiv 2511.16043, section 3.2: C = 4).

    Counted in the student's attempts, never in the teacher's text; empty, constant and repeated calls are not useful.
    """
    return None if features["useful_calls"] is None else min(features["useful_calls"], 4.0) / 4.0
