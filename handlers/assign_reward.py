"""Pays the student for each verdict, and the teacher once nothing more will be known of its task."""

from statistics import fmean
from typing import Any

from agent0.confidence import agreement, token_confidence
from agent0.rewards import receipt
from agent0.run import RunState
from agent0.state import AttemptState, TaskState
from events.alarms import ReactionDropped
from events.base import Event
from events.tasks import ResultVerified, RewardAssigned, TaskRejected
from events.values import Role
from handlers import on


@on(ResultVerified, TaskRejected, ReactionDropped)
async def assign_reward(event: ResultVerified | TaskRejected | ReactionDropped, run: RunState) -> list[Event]:
    """Receipts for whom this event completed something."""
    task = event.cause_task if isinstance(event, ReactionDropped) else event.task
    held = run.tasks.get(task)
    if held is None:
        return []
    paid = [_student(run, event, held)] if isinstance(event, ResultVerified) else []
    return paid if held.closed else [*paid, *_teacher(run, event, task, held)]


def _teacher(run: RunState, event: Event, task: str, held: TaskState) -> list[Event]:
    """Only what settles an attempt can close its task, so that nobody is paid twice."""
    match event:
        case TaskRejected():
            return [_pay(run, task, "teacher", _rejected(event))]
        case ReactionDropped(failed_handler=handler) if handler not in ("attempt_task", "verify_result"):
            return []
    return [_pay(run, task, "teacher", _closing(held))] if held.settled else []


def _student(run: RunState, event: ResultVerified, held: TaskState) -> Event:
    attempt = held.attempts[event.attempt]
    facts = {
        "correct": event.correct,
        "grounded": attempt.grounded,
        "tool_ok": attempt.tool_ok,
        "tool_calls": attempt.tool_calls,
        "parse_errors": attempt.parse_errors,
        "answered": attempt.answer is not None,
        "tokens": attempt.tokens,
        "token_confidence": token_confidence(attempt.mean_logprob),
    }
    return _pay(run, event.task, "student", facts, event.attempt)


def _rejected(event: TaskRejected) -> dict[str, Any]:
    names = ("solve_rate", "self_consistency", "token_confidence", "mean_tool_ok")
    return {**dict.fromkeys(names), "accepted": False, "reason": event.reason, "novelty": event.novelty}


def _closing(held: TaskState) -> dict[str, Any]:
    tried = [a for a in held.attempts.values() if a.attempted]
    decided = [a for a in tried if a.correct is not None]
    found = agreement(a.answer for a in tried)
    return {
        "accepted": True,
        "reason": "",
        "novelty": held.novelty,
        "solve_rate": fmean(bool(a.correct) for a in decided) if decided else None,
        "self_consistency": found.share if tried else None,
        "answer_entropy": found.entropy if tried else None,
        "token_confidence": token_confidence(_mean_logprob(tried)),
        "mean_tool_ok": fmean(a.tool_ok for a in tried) if tried else None,
        "tool_share": fmean(a.tool_ok > 0 for a in tried) if tried else None,
        "attempts": len(tried),
    }


def _mean_logprob(tried: list[AttemptState]) -> float | None:
    known = [a.mean_logprob for a in tried if a.mean_logprob is not None]
    return fmean(known) if known else None


def _pay(run: RunState, task: str, role: Role, facts: dict[str, Any], attempt: str = "-") -> Event:
    policy = run.config.rewards
    parts, total = receipt(role, facts, policy.weights)
    return RewardAssigned(
        task=task,
        attempt=attempt,
        iteration=run.iteration,
        role=role,
        set=policy.set,
        parts=parts,
        total=total,
        checkpoint=run.student.id if role == "student" else run.teacher.id,
        facts=facts,
    )
