"""Reads from the log what a training may use: trajectories joined with their rewards and verdicts."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from agent0.errors import NotFoundError
from agent0.events.base import Recorded
from agent0.events.benchmarks import TaskReviewed
from agent0.events.checkpoints import TrainingRequested
from agent0.events.tasks import ResultVerified, RewardAssigned, TaskAttempted, TaskProposed
from agent0.events.values import QUESTIONS, Role, Task, Turn
from agent0.ports.storage import Artifacts, History
from agent0.rollout.claim_check import redeem, redeem_turns
from agent0.training.scored_trajectory import ScoredTrajectory

TYPES = ("TaskProposed", "TaskAttempted", "ResultVerified", "RewardAssigned", "TaskReviewed")


@dataclass
class _Joined:
    written: dict[str, Recorded] = field(default_factory=dict)
    rewards: dict[str, float | None] = field(default_factory=dict)
    verdicts: dict[str, bool | None] = field(default_factory=dict)
    reviews: dict[str, bool] = field(default_factory=dict)
    """Decisions of reviewers."""
    rates: dict[str, float | None] = field(default_factory=dict)
    doubts: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)


async def collect_trajectories(
    run: str, request: TrainingRequested, history: History, artifacts: Artifacts
) -> tuple[list[ScoredTrajectory], list[ScoredTrajectory]]:
    """Read the scored trajectories for ``request``: those of the iteration, and those that may be replayed.

    Both lists are ordered by the id of attempt or task, so that the order of completion does not matter. What is read
    follows from the run and the request's bounds alone, so the result never changes.
    """
    first = min(request.after, request.replay_after)
    events = [r async for r in history.read(run, TYPES, after=first, until=request.until)]
    fresh = _trajectories(request, (r for r in events if r.seq > request.after), artifacts)
    return fresh, _trajectories(request, events, artifacts) if request.role == "student" else []


def _turns(event: TaskAttempted, artifacts: Artifacts) -> tuple[Turn, ...]:
    """The whole conversation; empty where a long one is no longer kept."""
    try:
        return redeem_turns(event.transcript, event.transcript_artifact, artifacts)
    except NotFoundError:
        return ()


def _trajectories(
    request: TrainingRequested, events: Iterable[Recorded], artifacts: Artifacts
) -> list[ScoredTrajectory]:
    joined = _join(request, events)
    rates = joined.rates | _foreign_rates(joined)
    trajectories = []
    for key, recorded in sorted(joined.written.items()):
        event = recorded.event
        assert isinstance(event, TaskAttempted | TaskProposed)  # noqa: S101 - _join keeps only these
        if event.iteration > request.iteration:
            continue  # attempted ahead of this training, and again by the fork that redoes it
        task = joined.tasks.get(event.task)
        scored = ScoredTrajectory(
            event_id=recorded.id,
            group=event.task,
            author=event.student if isinstance(event, TaskAttempted) else event.teacher,
            trajectory=redeem(event.trajectory, event.trajectory_artifact, artifacts),
            reward=_reward(joined, key),
            solve_rate=rates.get(event.task),
            success=bool(joined.reviews.get(key, joined.verdicts.get(key))),
            family=task.family if task else "",
            level=task.level if task else 0,
            problem=event.trajectory_problem,
            iteration=event.iteration,
            doubt=joined.doubts.get(event.task, ""),
        )
        trajectories.append(_with_attempt(scored, event, artifacts) if isinstance(event, TaskAttempted) else scored)
    return trajectories


def _foreign_rates(joined: _Joined) -> dict[str, float]:
    """Solve rates of tasks that were imported: no teacher was rewarded for them, whose receipt would say it."""
    outcomes: dict[str, list[bool]] = {}
    for key, recorded in joined.written.items():
        correct = joined.reviews.get(key, joined.verdicts.get(key))
        if isinstance(recorded.event, TaskAttempted) and recorded.event.foreign and correct is not None:
            outcomes.setdefault(recorded.event.task, []).append(correct)
    return {task: sum(marks) / len(marks) for task, marks in outcomes.items()}


def _with_attempt(scored: ScoredTrajectory, event: TaskAttempted, artifacts: Artifacts) -> ScoredTrajectory:
    """With what only an attempt has. A conversation is kept where other models wrote in it: it may be distilled."""
    turns, tools = _turns(event, artifacts) if event.authors else (), _tools(event, artifacts)
    attempt = replace(scored, tools=tools, authors=event.authors, turns=turns)
    return replace(attempt, answered=event.answer is not None, answer=event.answer, cut_off=event.end == "length")


def _tools(event: TaskAttempted, artifacts: Artifacts) -> tuple[str, ...]:
    """Names of the tools that answered, in order; none where a long transcript is no longer kept."""
    return tuple(turn.name for turn in _turns(event, artifacts) if turn.role == "tool" and turn.name)


def _join(request: TrainingRequested, events: Iterable[Recorded]) -> _Joined:
    joined = _Joined()
    for recorded in events:
        if isinstance(recorded.event, TaskProposed) and recorded.event.proposal:
            joined.tasks[recorded.event.task] = recorded.event.proposal
        match recorded.event:
            case TaskAttempted() as event if request.role == "student":
                joined.written[event.attempt] = recorded
            # a row of a file was written by no teacher
            case TaskProposed() as event if request.role == "teacher" and not _is_row(event):
                joined.written[event.task] = recorded
            case ResultVerified() as event:
                joined.verdicts[event.attempt] = event.correct
            case TaskReviewed(correct=bool()) as event:
                joined.reviews[event.attempt] = bool(event.correct)
            case RewardAssigned() as event:
                _add_reward(joined, request.role, event)
    return joined


def _is_row(event: TaskProposed) -> bool:
    return event.proposal is not None and event.proposal.family == QUESTIONS


def _add_reward(joined: _Joined, role: Role, event: RewardAssigned) -> None:
    if event.role == "teacher":
        joined.rates[event.task] = event.facts.get("solve_rate")
        joined.doubts[event.task] = event.facts.get("doubt", "")
    if event.role == role:
        joined.rewards[event.task if role == "teacher" else event.attempt] = _scored(event)


def _reward(joined: _Joined, key: str) -> float | None:
    """The assigned reward; None where a reviewer has since contradicted the verdict it was assigned for."""
    verdict = joined.verdicts.get(key)
    contradicted = verdict is not None and joined.reviews.get(key, verdict) != verdict
    return None if contradicted else joined.rewards.get(key)


def _scored(event: RewardAssigned) -> float | None:
    """The total, None where no part could be scored: unscored is not zero."""
    return event.total if any(part.value is not None for part in event.parts) else None
