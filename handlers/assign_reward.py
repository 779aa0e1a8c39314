"""Pays the student for each verdict, or for all of a task where they are compared, and the teacher once nothing more
will be known of its task."""

from agent0.paying import payouts
from agent0.run import RunState
from events.alarms import ReactionDropped
from events.base import Event
from events.tasks import ResultVerified, TaskRejected
from handlers import on


@on(ResultVerified, TaskRejected, ReactionDropped)
async def assign_reward(event: ResultVerified | TaskRejected | ReactionDropped, run: RunState) -> list[Event]:
    """Receipts for whom this event completed something; by one event only, so nobody is paid twice."""
    return [*payouts(event, run)]
