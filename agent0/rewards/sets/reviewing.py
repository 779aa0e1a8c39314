"""The reward set of reviews of a repository."""

from agent0.events.values import REVIEWING, Role
from agent0.rewards import Features, Worth, reward, reward_set


@reward_set("reviewing", like="agent0", domain=REVIEWING)
def reviewing(role: Role, worth: Worth) -> float:
    """The weighted sum of all parts. Confirmed defects less false alarms count most; a faultless review adds to it."""
    return sum(worth.values())


@reward("correctness", role="student", weight=0.2, reads=("correct",), set="reviewing")
def correctness(features: Features) -> float | None:
    """1 where every defect is named and nothing else, or what is right is passed, else 0; None where undecided."""
    return None if features["correct"] is None else float(features["correct"])


@reward("subgoals", role="student", weight=1.0, reads=("credit",), set="reviewing")
def share(features: Features) -> float | None:
    """The share of defects that are named and confirmed, less 0.5 for each false alarm; at least 0."""
    return None if features["credit"] is None else float(features["credit"])
