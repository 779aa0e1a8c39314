"""Human review in verification: whose verdict counts, what a review records, and what it does to rewards."""

from collections.abc import Iterable

from agent0.events.alarms import AlarmRaised
from agent0.events.base import Event
from agent0.events.benchmarks import TaskReviewed
from agent0.events.tasks import ResultVerified
from agent0.settings import RunConfig
from agent0.state.run_state import RunState, TaskState
from agent0.verification.panel import disputed

PERSON = "person"
"""The verifier of what a person decided."""

MOST = 5
"""Tasks of an iteration that are named by an alarm of their own."""


def awaits_person(event: ResultVerified, config: RunConfig) -> bool:
    """Whether this verdict leaves the attempt open because the run asks a reviewer where no verdict can be given."""
    return event.correct is None and event.verifier != PERSON and config.verification.undecided == "ask"


def is_rewarded_verdict(event: ResultVerified, task: TaskState) -> bool:
    """Whether ``event`` is the verdict that its attempt is rewarded by, ``task`` being the task's state
    just after it."""
    attempt = task.attempts.get(event.attempt)
    return attempt is not None and attempt.verified and attempt.judge == event.verifier


def verdict_alarms(event: ResultVerified, run: RunState) -> list[AlarmRaised]:
    """Alarms that a verdict raises, ``run`` being the state just after it.

    Checks that contradict one another: once a task, for ``MOST`` tasks of an iteration, then once that there are more.
    And, once an iteration, that a reviewer is awaited.
    """
    task = run.tasks.get(event.task)
    if task is None:
        return []
    return [*_awaited(event, run), *(_dispute(event, run) if disputed(event.votes) else [])]


def _awaited(event: ResultVerified, run: RunState) -> list[AlarmRaised]:
    if not awaits_person(event, run.config):
        return []
    waiting = [name for task in run.tasks.values() for name, attempt in task.attempts.items() if attempt.awaits_review]
    if waiting != [event.attempt]:
        return []
    message = f"iteration {run.iteration} waits for a person's verdicts: agent0 task review {run.run}"
    return [AlarmRaised(alarm=f"review-wanted-{run.iteration}", severity="warning", message=message)]


def _dispute(event: ResultVerified, run: RunState) -> list[AlarmRaised]:
    before = [name for name, attempt in run.tasks[event.task].attempts.items() if attempt.disputed]
    tasks = sum(any(attempt.disputed for attempt in task.attempts.values()) for task in run.tasks.values())
    if before != [event.attempt] or tasks > MOST + 1:
        return []
    if tasks > MOST:
        message = f"checks disagree about more than {MOST} tasks of iteration {run.iteration}; no more are named"
        return [AlarmRaised(alarm=f"disagreements-{run.iteration}", severity="warning", message=message)]
    facts = {vote.check: vote.correct for vote in event.votes}
    message = f"{event.attempt}: {event.reason}"
    return [AlarmRaised(alarm=f"disagreement-{event.task}", severity="info", message=message, facts=facts)]


def reviewed(review: TaskReviewed, machine: bool | None, verifier: str) -> list[Event]:
    """The events that record a review: the review, and an alarm where it contradicts the ``machine``'s verdict."""
    if machine is None or review.correct is None or review.correct == machine:
        return [review]
    labels = {True: "right", False: "wrong"}
    message = f"{review.attempt}: {review.reviewer} says {labels[review.correct]}, {verifier} said {labels[machine]}"
    facts = {"attempt": review.attempt, "verifier": verifier, "reason": review.reason[:500]}
    return [review, AlarmRaised(alarm=f"review-{review.attempt}", severity="warning", message=message, facts=facts)]


def verdict_of(review: TaskReviewed, iteration: int, answer: str | None) -> ResultVerified:
    """Turn a review into the verdict of an attempt that had none."""
    return ResultVerified(
        task=review.task,
        attempt=review.attempt,
        iteration=iteration,
        correct=review.correct,
        verifier=PERSON,
        reason=f"{review.reviewer}: {review.reason}"[:500].rstrip(": "),
        got=(answer or "")[:200],
    )


def verdicts_of(reviews: Iterable[TaskReviewed]) -> dict[str, ResultVerified]:
    """Verdicts by attempt, the last review of each: to recompute a run's rewards as reviewers judged it."""
    return {review.attempt: verdict_of(review, 0, None) for review in reviews if review.correct is not None}
