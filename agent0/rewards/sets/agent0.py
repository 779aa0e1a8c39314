"""The default reward set."""

from agent0.events.values import Role
from agent0.rewards import Worth, reward_set


@reward_set("agent0")
def agent0(role: Role, worth: Worth) -> float:
    """The weighted sum of all parts in ``agent0/rewards/``. Right is what the verifier says; a task earns for
    difficulty only where something was verified, and tool calls count only where they were useful."""
    return sum(worth.values())
