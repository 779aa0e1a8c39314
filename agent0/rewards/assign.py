"""What a deed is paid: pure, so that a run's rewards can be recomputed under other rules from what happened in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from agent0.rewards import read_by, receipt, registered, waits
from agent0.rewards.features import CLUSTERS, Deed, gather, questions_of
from agent0.rollout.confidence.signals import agreement, token_confidence
from agent0.settings import RewardConfig
from agent0.state.reward_history import Ledger, Moments
from agent0.state.run_state import AttemptState, RunState, TaskState
from agent0.verification.human_review import counts
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
    """The same, one by one to be computed. Where a part of the student's waits for all attempts at its task, or did in
    the run, they are paid together, by the number of the attempt and before the teacher."""
    rules = effective(policy, run.config.rewards)
    together = waits(rules) or waits(run.config.rewards)
    match event:
        case TaskRejected(task=task) if (held := run.tasks.get(task)) and not held.closed:
            return [Due(run, rules, task, "teacher", _rejected(event))]
        case ResultVerified(task=task) if (held := run.tasks.get(task)) and counts(event, held):
            own = [] if together else [_student(run, rules, task, event.attempt)]
            return [*own, *_closed(run, rules, together)]
        case ReactionDropped():
            return _closed(run, rules, together)
    return []


def alike(event: Event, run: RunState) -> tuple[str, ...] | None:
    """The questions that a receipt by ``event`` compares each with each, None where none does. That takes time with the
    square of their number: ``agent0.rewards.batch_similarity.shares`` of them is computed beforehand, off the event
    loop."""
    rules = run.config.rewards
    if CLUSTERS not in read_by("teacher", rules.weights, registered(rules)):
        return None
    return questions_of(run) if any(due.role == "teacher" for due in dues(event, run)) else None


def _closed(run: RunState, rules: RewardConfig, together: bool) -> list[Due]:
    """The teacher's reward for the task that this event settled, and before it those of attempts that are paid
    together: by one event only, so nobody is paid twice."""
    task = run.just_settled
    held = run.tasks.get(task)
    if held is None or held.closed:
        return []
    judged = [name for name, attempt in held.attempts.items() if attempt.verified and not attempt.dropped]
    students = [_student(run, rules, task, name) for name in judged if together]
    return [*students, Due(run, rules, task, "teacher", _closing(held))]


def _student(run: RunState, rules: RewardConfig, task: str, name: str) -> Due:
    attempt = run.tasks[task].attempts[name]
    facts = {
        "correct": attempt.correct,
        "credit": attempt.credit,
        "grounded": attempt.grounded,
        "tool_ok": attempt.tool_ok,
        "tool_calls": attempt.tool_calls,
        "parse_errors": attempt.parse_errors,
        "answered": attempt.answer is not None,
        "tokens": attempt.tokens,
        "token_confidence": token_confidence(attempt.mean_logprob),
    }
    return Due(run, rules, task, "student", facts, name)


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
