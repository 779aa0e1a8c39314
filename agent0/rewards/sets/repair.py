"""The reward set of bugs and changes of a repository."""

from agent0.events.values import REPAIR, Role
from agent0.rewards import Features, Worth, reward, reward_set

MOST = 40
"""Changed lines from which a change is no longer small."""


@reward_set("repair", like="agent0", domain=REPAIR)
def repair(role: Role, worth: Worth) -> float:
    """The weighted sum of all parts. The verdict of hidden tests counts most; the share of them that a wrong repair
    mends, and a small change of a right one, add to it."""
    return sum(worth.values())


@reward("subgoals", role="student", weight=0.3, reads=("credit",), set="repair")
def mended(features: Features) -> float | None:
    """The failing hidden tests that pass now, less those that were broken, as a share of the failing ones; at least 0.
    None where nothing was changed."""
    return None if features["credit"] is None else float(features["credit"])


@reward("small_change", role="student", weight=0.1, reads=("correct", "changed_lines"), set="repair")
def small_change(features: Features) -> float | None:
    """1 for a right repair that changes no line of code, falling to 0 at 40 lines; 0 for a wrong one. None where
    either is unknown."""
    if features["correct"] is None or features["changed_lines"] is None:
        return None
    return max(0.0, 1 - features["changed_lines"] / MOST) if features["correct"] else 0.0
