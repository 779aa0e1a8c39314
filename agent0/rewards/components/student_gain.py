"""The teacher's reward for tasks that teach: measured, not guessed from how hard they are."""

from agent0.rewards import Features, reward


@reward("student_gain", role="teacher", weight=0.0, reads=("student_gain",))
def student_gain(features: Features) -> float | None:
    """How many more of the tasks just beyond its frontier the student solves after a short training on the answers to
    this task and others of its part, as a share (SOAR, arXiv 2601.18778); what is compared is left to the teacher's
    baseline. 0 where no answer was accepted. None where nothing was measured (``run.rewards.gain``)."""
    return None if features["student_gain"] is None else float(features["student_gain"])
