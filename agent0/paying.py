"""What a deed is paid: pure, so that a run's rewards can be recomputed under other rules from what happened in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from agent0.confidence import agreement, token_confidence
from agent0.evidence import Deed, gather
from agent0.ledger import Ledger, Moments
from agent0.reviewing import counts
from agent0.rewards import read_by, receipt, reward_sets
from agent0.run import RunState
from agent0.settings import RewardConfig
from agent0.state import AttemptState, TaskState
from events.alarms import ReactionDropped
from events.base import Event
from events.tasks import ResultVerified, RewardAssigned, TaskRejected
from events.values import Role

SMALLEST = 1e-6
"""A deviation up to this is none: totals are then only centred."""

COMPLETING = (ResultVerified, TaskRejected, ReactionDropped)
"""Events after which somebody may have to be paid."""


@dataclass(frozen=True)
class Due:
    """A receipt that is due and not computed yet: a reward is anybody's code, and one that raises takes no other along.
    ``facts`` are those that the events themselves tell."""

    run: RunState
    rules: RewardConfig
    task: str
    role: Role
    facts: Mapping[str, Any]
    attempt: str = "-"

    def pay(self) -> RewardAssigned:
        """The receipt."""
        run, rules, role = self.run, self.rules, self.role
        chosen, held = registered(rules), run.tasks[self.task]
        deed = Deed(run, rules, held, held.attempts.get(self.attempt))
        facts = {**self.facts, **gather(role, read_by(role, rules.weights, chosen), deed)}
        parts, raw = receipt(role, facts, rules.weights, chosen)
        total, how = _scaled(run, rules, role, raw)
        return RewardAssigned(
            task=self.task,
            attempt=self.attempt,
            iteration=run.iteration,
            role=role,
            set=rules.set,
            parts=parts,
            total=total,
            checkpoint=run.student.id if role == "student" else run.teacher.id,
            facts=facts | how,
        )


def payouts(event: Event, run: RunState, policy: RewardConfig | None = None) -> list[RewardAssigned]:
    """Receipts for whom ``event`` completed something, ``run`` being the state just after it.

    ``policy`` None: the run's own.
    """
    return [due.pay() for due in dues(event, run, policy)]


def dues(event: Event, run: RunState, policy: RewardConfig | None = None) -> list[Due]:
    """The same, one by one to be computed."""
    rules = effective(policy, run.config.rewards)
    match event:
        case TaskRejected(task=task) if (held := run.tasks.get(task)) and not held.closed:
            return [Due(run, rules, task, "teacher", _rejected(event))]
        case ResultVerified(task=task) if (held := run.tasks.get(task)) and counts(event, held):
            return [_student(run, rules, event, held), *_closed(run, rules)]
        case ReactionDropped():
            return _closed(run, rules)
    return []


def _closed(run: RunState, rules: RewardConfig) -> list[Due]:
    """The teacher's reward for the task that this event settled: by one event only, so nobody is paid twice."""
    held = run.tasks.get(run.just_settled)
    return [Due(run, rules, run.just_settled, "teacher", _closing(held))] if held and not held.closed else []


def _student(run: RunState, rules: RewardConfig, event: ResultVerified, held: TaskState) -> Due:
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
    return Due(run, rules, event.task, "student", facts, event.attempt)


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


def effective(policy: RewardConfig | None, own: RewardConfig) -> RewardConfig:
    """``policy``, or a run's ``own`` rules where there is none. A policy that names no edition has the run's."""
    if policy is None or "edition" in policy.model_fields_set:
        return policy or own
    return policy.model_copy(update={"edition": own.edition})


def registered(rules: RewardConfig) -> str:
    """The name that a set is registered under: an earlier edition has one of its own where it differs."""
    earlier = f"{rules.set}/{rules.edition}"
    return earlier if earlier in reward_sets() else rules.set


def _scaled(run: RunState, rules: RewardConfig, role: Role, raw: float) -> tuple[float, dict[str, Any]]:
    """The total as it is paid, and how it came from the ``raw`` one; nothing is told where nothing is changed."""
    if not rules.normalize and not rules.clip:
        return raw, {}
    before = (run.ledger or Ledger()).at(run.iteration).earned.get(role, Moments())
    told: dict[str, Any] = {"raw_total": raw}
    total = raw
    if rules.normalize:
        told |= {"earned": before.count, "earned_mean": before.mean, "earned_deviation": before.deviation}
        total = (raw - before.mean) / before.deviation if before.deviation > SMALLEST else raw - before.mean
    if rules.clip:
        total = max(-rules.clip, min(rules.clip, total))
    return round(total, 12), told
