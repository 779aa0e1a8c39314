"""The form of an iteration's answers: what training learns from by its verdicts, beside all that was answered."""

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from agent0.state.run_state import AttemptState, TaskState

FEWEST = 10
"""Right attempts, below which their form says nothing."""
_comment = re.compile(r"^\s*#|\s#\s", re.MULTILINE)


def form_measures(tasks: Iterable[TaskState], most_solved: float) -> Mapping[str, float | None]:
    """Compare the right attempts at tasks of a solve rate of at most ``most_solved`` with all answered attempts: mean
    tokens, share with a tool call, mean comments a program. Empty where fewer than ``FEWEST`` are right."""
    accepted = [task for task in tasks if task.accepted]
    answered = [a for task in accepted for a in task.attempts.values() if a.answer is not None]
    taught = [task for task in accepted if task.solve_rate is not None and task.solve_rate <= most_solved]
    right = [a for task in taught for a in task.attempts.values() if a.answer is not None and a.correct]
    if len(right) < FEWEST:
        return {}
    return {**_form(right, "right"), **_form(answered, "answered")}


def _form(attempts: Sequence[AttemptState], whose: str) -> Mapping[str, float | None]:
    programs = [str(call.arguments["code"]) for a in attempts for call in a.calls if "code" in call.arguments]
    comments = [len(_comment.findall(program)) for program in programs]
    return {
        f"tokens_{whose}": fmean(a.tokens for a in attempts),
        f"programs_{whose}": fmean(a.tool_calls > 0 for a in attempts),
        f"comments_{whose}": fmean(comments) if comments else None,
    }
