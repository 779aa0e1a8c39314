"""What a deed is paid: pure, so that a run's rewards can be recomputed under other rules from what happened in it."""

from statistics import fmean
from typing import Any

from agent0.confidence import agreement, token_confidence
from agent0.reviewing import counts
from agent0.rewards import receipt
from agent0.run import RunState
from agent0.settings import RewardConfig
from agent0.state import AttemptState, TaskState
from events.alarms import ReactionDropped
from events.base import Event
from events.tasks import ResultVerified, RewardAssigned, TaskRejected
from events.values import Role

COMPLETING = (ResultVerified, TaskRejected, ReactionDropped)
"""Events after which somebody may have to be paid."""


def payouts(event: Event, run: RunState, policy: RewardConfig | None = None) -> list[RewardAssigned]:
    """Receipts for whom ``event`` completed something, ``run`` being the state just after it.

    ``policy`` None: the run's own.
    """
    rules = policy or run.config.rewards
    match event:
        case TaskRejected(task=task) if (held := run.tasks.get(task)) and not held.closed:
            return [_pay(run, rules, task, "teacher", _rejected(event))]
        case ResultVerified(task=task) if (held := run.tasks.get(task)) and counts(event, held):
            return [_student(run, rules, event, held), *_closed(run, rules)]
        case ReactionDropped():
            return _closed(run, rules)
    return []


def _closed(run: RunState, rules: RewardConfig) -> list[RewardAssigned]:
    """The teacher's reward for the task that this event settled: by one event only, so nobody is paid twice."""
    held = run.tasks.get(run.just_settled)
    return [_pay(run, rules, run.just_settled, "teacher", _closing(held))] if held and not held.closed else []


def _student(run: RunState, rules: RewardConfig, event: ResultVerified, held: TaskState) -> RewardAssigned:
    attempt = held.attempts[event.attempt]
    facts = {
        "correct": event.correct,
        "credit": event.credit,
        "grounded": attempt.grounded,
        "tool_ok": attempt.tool_ok,
        "tool_calls": attempt.tool_calls,
        "parse_errors": attempt.parse_errors,
        "answered": attempt.answer is not None,
        "tokens": attempt.tokens,
        "token_confidence": token_confidence(attempt.mean_logprob),
    }
    return _pay(run, rules, event.task, "student", facts, event.attempt)


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


def _pay(
    run: RunState, rules: RewardConfig, task: str, role: Role, facts: dict[str, Any], attempt: str = "-"
) -> RewardAssigned:
    parts, total = receipt(role, facts, rules.weights)
    return RewardAssigned(
        task=task,
        attempt=attempt,
        iteration=run.iteration,
        role=role,
        set=rules.set,
        parts=parts,
        total=total,
        checkpoint=run.student.id if role == "student" else run.teacher.id,
        facts=facts,
    )
