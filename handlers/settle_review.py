"""Records a reviewer's verdict where an attempt has none; later reviews count when rewards are recomputed."""

from agent0.events.base import Event
from agent0.events.benchmarks import TaskReviewed
from agent0.handlers import on
from agent0.run.lifecycle import RunState
from agent0.verification.human_review import verdict_of


@on(TaskReviewed)
async def settle_review(event: TaskReviewed, run: RunState) -> list[Event]:
    """Return the reviewer's verdict for an attempt of the present iteration that was answered and has none."""
    task_state = run.tasks.get(event.task)
    attempt = task_state.attempts.get(event.attempt) if task_state else None
    if attempt is None or not attempt.attempted or attempt.resolved:
        return []
    return [verdict_of(event, run.iteration, attempt.answer)]
