"""Accepted tasks whose own program may not answer them, by what attempts at them came to."""

from typing import Literal

from agent0.grading.normal_form import normal_form
from agent0.rollout.confidence.signals import agreement
from agent0.state.run_state import TaskState
from agent0.tasks.families import OPEN_FAMILY

Doubt = Literal["", "ambiguous", "unanswerable"]
AGREEING, LEAST = 0.5, 3
"""Share of all attempts that agree on another answer than the program's, and how many these are at least."""


def doubt_of(task: TaskState) -> Doubt:
    """Why the answer of a free question's program may be wrong: attempts agree among themselves on another one
    (``ambiguous``), or none of several agrees with it (``unanswerable``)."""
    proposal = task.proposal
    if proposal is None or proposal.family != OPEN_FAMILY or not proposal.program:
        return ""
    judged = [a for a in task.attempts.values() if a.attempted and a.correct is not None]
    if len(judged) < LEAST:
        return ""
    answers = agreement(a.answer for a in judged)
    right = {normal_form(a.answer) for a in judged if a.correct and a.answer is not None}
    if answers.count >= LEAST and answers.share >= AGREEING and answers.majority not in right:
        return "ambiguous"
    return "" if right else "unanswerable"
