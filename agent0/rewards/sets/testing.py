"""The reward set of tests of a repository."""

from agent0.events.values import TESTING, Role
from agent0.rewards import Features, Worth, reward, reward_set


@reward_set("testing", like="agent0", domain=TESTING)
def testing(role: Role, worth: Worth) -> float:
    """The weighted sum of all parts. What tests reject counts most; rejecting every wrong version adds to it."""
    return sum(worth.values())


@reward("correctness", role="student", weight=0.2, reads=("correct",), set="testing")
def correctness(features: Features) -> float | None:
    """1 where every wrong version is rejected, else 0; None where undecided."""
    return None if features["correct"] is None else float(features["correct"])


@reward("subgoals", role="student", weight=1.0, reads=("credit",), set="testing")
def share(features: Features) -> float | None:
    """The share of wrong versions that are rejected, less that of 0.25 versions for each test that rejects none beyond
    those before it; 0 where a test is wrong of the code itself."""
    return None if features["credit"] is None else float(features["credit"])
