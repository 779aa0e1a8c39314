"""The cost of an attempt in tokens, calls and seconds. No weight unless settings give one."""

from agent0.rewards import Features, reward

TOKENS, CALLS, SECONDS = 1024, 8, 60.0
"""What costs one whole unit."""


@reward("token_cost", role="student", weight=0.0, reads=("tokens",))
def token_cost(features: Features) -> float | None:
    """Minus the tokens written, 1,024 being one unit and the most."""
    return None if features["tokens"] is None else -min(1.0, features["tokens"] / TOKENS)


@reward("call_cost", role="student", weight=0.0, reads=("tool_calls",))
def call_cost(features: Features) -> float | None:
    """Minus the tool calls made, 8 being one unit and the most."""
    return None if features["tool_calls"] is None else -min(1.0, features["tool_calls"] / CALLS)


@reward("latency", role="student", weight=0.0, reads=("wall_s",))
def latency(features: Features) -> float | None:
    """Minus the seconds that model and tools took, 60 being one unit and the most."""
    return None if features["wall_s"] is None else -min(1.0, features["wall_s"] / SECONDS)
