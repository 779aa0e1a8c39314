"""The reward set of docstrings."""

from agent0.events.values import DOCUMENTING, Role
from agent0.rewards import Features, Worth, reward, reward_set


@reward_set("documenting", like="agent0", domain=DOCUMENTING)
def documenting(role: Role, worth: Worth) -> float:
    """The weighted sum of all parts. The verdict alone counts: a reader needs every docstring."""
    return sum(worth.values())


@reward("correctness", role="student", weight=1.0, reads=("correct",), set="documenting")
def correctness(features: Features) -> float | None:
    """1 where every docstring is exact, else 0; None where undecided."""
    return None if features["correct"] is None else float(features["correct"])


@reward("subgoals", role="student", weight=0.0, reads=("credit",), set="documenting")
def share(features: Features) -> float | None:
    """The share of functions whose docstrings are exact."""
    return None if features["credit"] is None else float(features["credit"])
