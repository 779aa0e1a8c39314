"""The student's reward for a right answer; an undecided verdict is unscored."""

from agent0.rewards import Features, reward


@reward("correctness", role="student", weight=1.0, reads=("correct",))
def correctness(features: Features) -> float | None:
    """1 right, 0 wrong, None undecided (arXiv 2511.16043, section 3.3)."""
    return None if features["correct"] is None else float(features["correct"])
