"""Assigns rewards to proposals and attempts. Pure, so that a run's rewards can be recomputed under other rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from agent0.events.alarms import ReactionDropped
from agent0.events.base import Event
from agent0.events.tasks import ProbeSelected, ResultVerified, RewardAssigned, SubsetMeasured, TaskRejected
from agent0.events.values import Role
from agent0.rewards import features_read, receipt, waits_for_group
from agent0.rewards.features import CLUSTERS, RewardContext, compute_features, questions_of
from agent0.rollout.confidence.signals import agreement, token_confidence
from agent0.settings import RewardConfig
from agent0.state.reward_history import Moments, RewardHistory
from agent0.state.run_state import AttemptState, RunState, TaskState
from agent0.verification.human_review import is_rewarded_verdict
from agent0.verification.task_fault import doubt_of

SMALLEST = 1e-6
"""A deviation up to this counts as zero: totals are then only centred."""

COMPLETING = (ResultVerified, TaskRejected, ReactionDropped, ProbeSelected, SubsetMeasured)
"""Events that may complete a proposal or an attempt, so that its reward is assigned."""


MEASURING = "measure_gain"
"""The handler whose results the teacher's rewards wait for, where gains are measured."""


@dataclass(frozen=True)
class PendingReward:
    """A reward to assign that is not computed yet: computing one may raise, and must not take the others along.

    ``facts`` are the features that come from the events themselves.
    """

    run: RunState
    rules: RewardConfig
    task: str
    role: Role
    facts: Mapping[str, object]
    attempt: str = "-"

    def assign(self) -> RewardAssigned:
        """Compute the receipt: features, parts, total, and the scaling of the total."""
        run, rules, role = self.run, self.rules, self.role
        task = run.tasks[self.task]
        context = RewardContext(run, rules, task, task.attempts.get(self.attempt))
        facts = {**self.facts, **compute_features(role, features_read(role, rules.weights, rules.set), context)}
        of = self.task if self.attempt == "-" else self.attempt
        parts, raw = receipt(role, facts, rules.weights, rules.set, of)
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


def assigned_rewards(event: Event, run: RunState) -> list[RewardAssigned]:
    """Compute every receipt that ``event`` completes, ``run`` being the state just after it."""
    return [pending.assign() for pending in pending_rewards(event, run)]


def pending_rewards(event: Event, run: RunState, policy: RewardConfig | None = None) -> list[PendingReward]:
    """List the rewards that ``event`` completes, without computing them. ``policy`` None: by the run's own settings.

    Where a part of the student's reward compares all attempts at a task, here or in the run's own settings, they are
    rewarded together: in order of their numbers, before the teacher.
    """
    rules = policy or run.config.rewards
    together = waits_for_group(rules) or waits_for_group(run.config.rewards)
    match event:
        case TaskRejected(task=task) if (task_state := run.tasks.get(task)) and not task_state.closed:
            return [PendingReward(run, rules, task, "teacher", _rejected(event))]
        case ResultVerified(task=task) if (task_state := run.tasks.get(task)) and is_rewarded_verdict(
            event, task_state
        ):
            students = [] if together else [student_reward(run, rules, task, event.attempt)]
            return [*students, *_closed(run, rules, together)]
        case ReactionDropped(failed_handler=handler) if handler != MEASURING:
            return _closed(run, rules, together)
        case ProbeSelected() | SubsetMeasured() | ReactionDropped():
            return _measured(run, rules)
    return []


def questions_to_compare(event: Event, run: RunState) -> tuple[str, ...] | None:
    """The questions that a receipt caused by ``event`` compares with each other; None where none does.

    Comparing takes time quadratic in their number, so ``agent0.rewards.batch_similarity.shares`` of them is computed
    beforehand, off the event loop.
    """
    rules = run.config.rewards
    if CLUSTERS not in features_read("teacher", rules.weights, rules.set):
        return None
    return questions_of(run) if any(pending.role == "teacher" for pending in pending_rewards(event, run)) else None


def _closed(run: RunState, rules: RewardConfig, together: bool) -> list[PendingReward]:
    """The teacher's reward for the task that this event resolved, preceded by those of attempts that are rewarded
    together. One event only has this effect, so nobody is rewarded twice."""
    task = run.just_settled
    task_state = run.tasks.get(task)
    if task_state is None or task_state.closed:
        return []
    judged = [name for name, attempt in task_state.attempts.items() if attempt.verified and not attempt.dropped]
    students = [student_reward(run, rules, task, name) for name in judged if together]
    if run.measures_gain:
        return students
    return [*students, PendingReward(run, rules, task, "teacher", _closing(task_state))]


def _measured(run: RunState, rules: RewardConfig) -> list[PendingReward]:
    """The teacher's rewards of all tasks that waited for a measurement which is complete as of this event, or was given
    up with it: only the last event of a measurement finds nothing pending."""
    if run.phase != "measuring" or run.pending:
        return []
    waiting = sorted((state.slot, name) for name, state in run.tasks.items() if not state.closed)
    return [PendingReward(run, rules, name, "teacher", _closing(run.tasks[name])) for _, name in waiting]


def student_reward(run: RunState, rules: RewardConfig, task: str, name: str) -> PendingReward:
    """The reward of the attempt ``name`` at ``task``, as far as both are known to ``run``."""
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
    return PendingReward(run, rules, task, "student", facts, name)


def _rejected(event: TaskRejected) -> dict[str, object]:
    names = ("solve_rate", "self_consistency", "token_confidence", "mean_tool_ok")
    return {**dict.fromkeys(names), "accepted": False, "reason": event.reason, "novelty": event.novelty}


def _closing(task: TaskState) -> dict[str, object]:
    tried = [a for a in task.attempts.values() if a.attempted]
    decided = [a for a in tried if a.correct is not None]
    answers = agreement(a.answer for a in tried)
    return {
        "accepted": True,
        "reason": "",
        "novelty": task.novelty,
        "solve_rate": fmean(bool(a.correct) for a in decided) if decided else None,
        "self_consistency": answers.share if tried else None,
        "answer_entropy": answers.entropy if tried else None,
        "token_confidence": token_confidence(_mean_logprob(tried)),
        "mean_tool_ok": fmean(a.tool_ok for a in tried) if tried else None,
        "tool_share": fmean(a.tool_ok > 0 for a in tried) if tried else None,
        "attempts": len(tried),
        **({"doubt": doubt} if (doubt := doubt_of(task)) else {}),
    }


def _mean_logprob(tried: list[AttemptState]) -> float | None:
    logprobs = [a.mean_logprob for a in tried if a.mean_logprob is not None]
    return fmean(logprobs) if logprobs else None


def _scaled(run: RunState, rules: RewardConfig, role: Role, raw: float) -> tuple[float, dict[str, float]]:
    """The normalised and clipped total, and the numbers it was scaled by; these are empty where nothing is scaled."""
    if not rules.normalize and not rules.clip:
        return raw, {}
    before = (run.ledger or RewardHistory()).at(run.iteration).earned.get(role, Moments())
    facts: dict[str, float] = {"raw_total": raw}
    total = raw
    if rules.normalize:
        facts |= {"earned": before.count, "earned_mean": before.mean, "earned_deviation": before.deviation}
        total = (raw - before.mean) / before.deviation if before.deviation > SMALLEST else raw - before.mean
    if rules.clip:
        total = max(-rules.clip, min(rules.clip, total))
    return round(total, 12), facts
