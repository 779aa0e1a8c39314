"""Assigns the student's reward for each verdict, or for all of a task where they are compared, and the teacher's once
nothing more will be known of its task: where gains are measured, once they all are."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from agent0.events.alarms import ReactionDropped
from agent0.events.base import Event
from agent0.events.tasks import ProbeSelected, ResultVerified, SubsetMeasured, TaskRejected
from agent0.handlers import on
from agent0.rewards.assign import assigned_rewards, questions_to_compare
from agent0.rewards.batch_similarity import shares
from agent0.run.lifecycle import RunState

_aside = ThreadPoolExecutor(1, "alike")
"""One thread: reactions that wait for the same batch find it compared."""


@on(ResultVerified, TaskRejected, ReactionDropped, ProbeSelected, SubsetMeasured)
async def assign_reward(
    event: ResultVerified | TaskRejected | ReactionDropped | ProbeSelected | SubsetMeasured, run: RunState
) -> list[Event]:
    """Assign the rewards that this event completes; by one event only, so nobody is rewarded twice."""
    if (batch := questions_to_compare(event, run)) is not None:
        await asyncio.get_running_loop().run_in_executor(_aside, shares, batch)
    return [*assigned_rewards(event, run)]
