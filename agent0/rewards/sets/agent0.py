"""The default reward set, and the version of it that the first recorded runs used."""

from agent0.rewards import Features, Worth, reward, reward_set
from agent0.tasks.curriculum.sampler import frontier_value
from events.values import Role

FIRST = "agent0/1"
"""The set of runs recorded before calls had to be useful and difficulty verified."""


@reward_set("agent0")
def agent0(role: Role, worth: Worth) -> float:
    """The weighted sum of all parts in ``agent0/rewards/``. Right is what the verifier says; a task earns for
    difficulty only where something was verified, and tool calls count only where they were useful."""
    return sum(worth.values())


@reward_set(FIRST, like="agent0")
def agent0_first(role: Role, worth: Worth) -> float:
    """Version 1 of ``agent0``: any call that ran counts, and where nothing was verified the majority's share stands for
    the solve rate. For runs that were recorded under it."""
    return sum(worth.values())


_READ = ("solve_rate", "self_consistency", "token_confidence")


@reward("uncertainty", role="teacher", weight=1.0, reads=_READ, set=FIRST)
def uncertainty(features: Features) -> float | None:
    """``1 - 2|p - 1/2|``, with p the verified solve rate, or the majority's share where nothing could be verified."""
    rate = features["solve_rate"] if features["solve_rate"] is not None else features["self_consistency"]
    return None if rate is None else frontier_value(rate)


@reward("tool_use", role="student", weight=0.1, reads=("grounded", "correct"), set=FIRST)
def tool_use(features: Features) -> float | None:
    """1 where a right answer equals the output of one of its own successful calls, else 0."""
    return None if features["correct"] is None else float(features["correct"] and features["grounded"])


@reward("tool_demand", role="teacher", weight=0.1, reads=("mean_tool_ok",), set=FIRST)
def tool_demand(features: Features) -> float | None:
    """Mean calls an attempt that ran, whatever they did, capped at 4 and scaled to [0, 1]."""
    return None if features["mean_tool_ok"] is None else min(features["mean_tool_ok"], 4.0) / 4.0
