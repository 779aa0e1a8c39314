"""The teacher's penalty for tasks made of one digit: they are harder than others of their length, and teach little."""

from agent0.rewards import Features, reward

HALF = 0.5


@reward("digit_skew", role="teacher", weight=0.0, reads=("accepted", "digit_share"))
def digit_skew(features: Features) -> float | None:
    """-2 times what the most frequent digit's share of the question's digits is above one half: 0 up to there, -1 where
    all are alike; 0 for questions of few digits. None for a task that was not accepted."""
    if not features["accepted"]:
        return None
    share = features["digit_share"]
    return 0.0 if share is None else -2 * max(0.0, float(share) - HALF)
