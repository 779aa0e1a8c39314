"""The soft punishment of long attempts (DAPO, arXiv 2503.14476, section 3.4, equation 13). No weight unless settings
give one."""

from agent0.rewards import Features, reward

CACHE = 0.2
"""Share of the limit over which the punishment grows: the paper has 4,096 of 20,480 tokens."""


@reward("overlong", role="student", weight=0.0, reads=("tokens", "most_tokens", "cut_off"))
def overlong(features: Features) -> float | None:
    """0 up to ``1 - CACHE`` of the tokens that an attempt may write, falling to -1 at all of them; -1 where a reply was
    cut off."""
    if features["tokens"] is None or not features["most_tokens"] or features["cut_off"] is None:
        return None
    over = (features["tokens"] / features["most_tokens"] - (1 - CACHE)) / CACHE
    return -1.0 if features["cut_off"] else -min(1.0, max(0.0, over))
