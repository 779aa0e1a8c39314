"""Computes the measures of an iteration that monitors and curriculum charts use. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import exp, log, log2
from statistics import fmean

from agent0.grading.normal_form import normal_form
from agent0.rollout.confidence.signals import agreement
from agent0.run.canaries import canary_measures
from agent0.run.refill import with_contrast
from agent0.state.run_state import AttemptState, RunState, TaskState
from agent0.tasks.curriculum.ladder_height import attempted_height, on_ladder

ENOUGH = 10
"""Tasks of a level, from which on its solve rate says something of the level."""
FEWEST = 10
"""Right attempts, below which their form says nothing."""
_comment = re.compile(r"^\s*#|\s#\s", re.MULTILINE)


def measure(state: RunState) -> dict[str, float]:
    """Compute the measures of the present iteration, once its tasks are done; unknown ones are absent."""
    tasks = list(state.tasks.values())
    accepted = [task for task in tasks if task.accepted]
    tried = [a for task in accepted for a in task.attempts.values() if a.attempted]
    families = [task.proposal.family for task in accepted if task.proposal]
    measures: dict[str, float | None] = {
        "tasks": float(len(tasks)),
        "accepted": _share(task.accepted for task in tasks),
        **(_contrast(state) if state.config.refill > 1 else {}),
        "novelty": _mean(task.novelty for task in accepted),
        **_spread(families),
        **_attempts(tried),
        **_outcomes(accepted, state.config.curriculum.band, state.config.attempts > 1),
        "variety": _mean(map(_variety, accepted)),
        "validation": state.student.score.accuracy if state.student.score else None,
        **form_measures(accepted, state.config.curriculum.band[1]),
        **(_written(tasks) if state.config.curriculum.kind == "teacher" else {}),
        **(_climbed(state, accepted) if on_ladder(state.config) else {}),
    }
    return {name: round(value, 6) for name, value in measures.items() if value is not None}


def _contrast(state: RunState) -> dict[str, float | None]:
    contrast = with_contrast(state)
    tried = sum(any(attempt.attempted for attempt in task.attempts.values()) for task in state.tasks.values())
    return {"refilled": float(len(state.tasks) - state.config.tasks), "no_contrast": float(tried - contrast)}


def _climbed(state: RunState, accepted: list[TaskState]) -> Mapping[str, float | None]:
    """Heights only where levels are asked for: what a teacher chooses is few tasks of many levels."""
    if state.config.curriculum.kind == "teacher":
        return canary_measures(state)
    rates = [(task.proposal.level, task.solve_rate) for task in accepted if task.proposal]
    taught = [rate for level, rate in rates if level <= state.config.curriculum.mastered]
    at = attempted_height(state, ENOUGH)
    return {
        "frontier_level": None if at is None else float(at),
        "taught_rate": _mean(taught) if len(taught) >= ENOUGH else None,
        **canary_measures(state),
    }


def _written(tasks: list[TaskState]) -> dict[str, float | None]:
    """What a teacher wrote that chooses the level: of other teachers it would say what they were asked for."""
    written = [task for task in tasks if task.text or task.proposal]
    proposals = [task.proposal for task in written if task.proposal]
    rates = [task.solve_rate for task in tasks if task.accepted and task.solve_rate is not None]
    return {
        "written_level": _mean(float(proposal.level) for proposal in proposals),
        "readable": _share(task.proposal is not None for task in written),
        "different_texts": len({task.text for task in written}) / len(written) if written else None,
        "digit_entropy": _digit_entropy(proposal.question for proposal in proposals),
        "half_solved": _share(0 < rate < 1 for rate in rates),
        "learnable": _mean(4 * rate * (1 - rate) for rate in rates),
    }


def _digit_entropy(questions: Iterable[str]) -> float | None:
    counts = Counter(digit for question in questions for digit in question if digit in "0123456789")
    total = counts.total()
    return sum(n / total * log2(total / n) for n in counts.values()) if total else None


def _attempts(tried: list[AttemptState]) -> dict[str, float | None]:
    logprob = _mean(a.mean_logprob for a in tried)
    return {
        "attempts": float(len(tried)),
        "answered": _share(a.answer is not None for a in tried),
        "surprise": None if logprob is None else -logprob,
        "tokens": _mean(float(a.tokens) for a in tried),
        "tool_use": _share(a.tool_ok > 0 for a in tried),
        "unread": float(sum(a.parse_errors > 0 for a in tried)) if tried else None,
        "student_reward": _mean(a.reward for a in tried),
    }


def _outcomes(accepted: list[TaskState], band: tuple[float, float], votes: bool) -> dict[str, float | None]:
    """``votes``: whether a task has several attempts; a majority of one is none."""
    rated = [(task, task.solve_rate) for task in accepted if task.solve_rate is not None]
    inside = [task for task, rate in rated if band[0] <= rate <= band[1]]
    return {
        "solve_rate": _mean(rate for _, rate in rated),
        "solved": _share(rate > 0 for _, rate in rated),
        "frontier": _share(band[0] <= rate <= band[1] for _, rate in rated),
        "label_accuracy": _mean(map(_label, inside)) if votes else None,
    }


def _label(task: TaskState) -> float | None:
    """1 where the majority's answer is right; None where there is none, or nothing said whether it is right."""
    tried = [a for a in task.attempts.values() if a.attempted]
    majority = agreement(a.answer for a in tried).majority
    verdicts = [a.correct for a in tried if a.answer is not None and normal_form(a.answer) == majority]
    decided = [verdict for verdict in verdicts if verdict is not None]
    return float(decided[0]) if decided else None


def _variety(task: TaskState) -> float | None:
    answers = [normal_form(a.answer) for a in task.attempts.values() if a.answer is not None]
    return len(set(answers)) / len(answers) if answers else None


def _spread(families: list[str]) -> Mapping[str, float | None]:
    shares = [count / len(families) for count in Counter(families).values()]
    if not shares:
        return {}
    return {"families": exp(-sum(share * log(share) for share in shares)), "largest_family": max(shares)}


def _mean(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return fmean(numbers) if numbers else None


def _share(values: Iterable[bool]) -> float | None:
    return _mean(map(float, values))


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
