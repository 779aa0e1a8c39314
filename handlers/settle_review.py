"""Records a reviewer's verdict where an attempt has none; later reviews count when rewards are recomputed."""

from agent0.events.base import Event
from agent0.events.benchmarks import TaskReviewed
from agent0.handlers import on
from agent0.run.lifecycle import RunState
from agent0.verification.human_review import verdict_of


@on(TaskReviewed)
async def settle_review(event: TaskReviewed, run: RunState) -> list[Event]:
    """Return the reviewer's verdict for an attempt of the present iteration that was answered and has none."""
    held = run.tasks.get(event.task)
    attempt = held.attempts.get(event.attempt) if held else None
    if attempt is None or not attempt.attempted or attempt.resolved:
        return []
    return [verdict_of(event, run.iteration, attempt.answer)]
