"""The student is paid for being right; an undecided verdict pays nothing and says so."""

from agent0.rewards import Facts, reward


@reward("correctness", role="student", weight=1.0, reads=("correct",))
def correctness(facts: Facts) -> float | None:
    """1 right, 0 wrong, None undecided (arXiv 2511.16043, section 3.3)."""
    return None if facts["correct"] is None else float(facts["correct"])
