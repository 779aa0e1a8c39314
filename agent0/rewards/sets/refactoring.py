"""The reward set of simpler code."""

from agent0.events.values import REFACTORING, Role
from agent0.rewards import Features, Worth, reward, reward_set


@reward_set("refactoring", like="agent0", domain=REFACTORING)
def refactoring(role: Role, worth: Worth) -> float:
    """The weighted sum of all parts. The verdict counts most; how far complexity and size fell adds to it."""
    return sum(worth.values())


@reward("correctness", role="student", weight=1.0, reads=("correct",), set="refactoring")
def correctness(features: Features) -> float | None:
    """1 where both measures are as low as is asked for and all calls give the same, else 0; None where undecided."""
    return None if features["correct"] is None else float(features["correct"])


@reward("subgoals", role="student", weight=0.3, reads=("credit",), set="refactoring")
def share(features: Features) -> float | None:
    """How far the measure that fell less came, of the way that is asked for; 0 where a call gives another value."""
    return None if features["credit"] is None else float(features["credit"])
