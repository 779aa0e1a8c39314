"""Tool use counts where it was useful: calls of the student that ran, in attempts whose answer rests on them."""

from agent0.rewards import Facts, reward


@reward("tool_use", role="student", weight=0.1, reads=("grounded", "correct"))
def student_tool_use(facts: Facts) -> float | None:
    """1 where a right answer equals the output of one of its own successful calls, else 0."""
    return None if facts["correct"] is None else float(facts["correct"] and facts["grounded"])


@reward("tool_demand", role="teacher", weight=0.1, reads=("mean_tool_ok",))
def tool_demand(facts: Facts) -> float | None:
    """Mean successful calls an attempt, capped at 4 and scaled to [0, 1] (arXiv 2511.16043, section 3.2: C = 4).

    Counted in the student's attempts, never in the teacher's text.
    """
    return None if facts["mean_tool_ok"] is None else min(facts["mean_tool_ok"], 4.0) / 4.0
