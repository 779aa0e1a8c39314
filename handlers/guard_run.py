"""Watches what iterations come to: raises and resolves alarms, pauses the run or goes back to a better checkpoint."""

from agent0.run.lifecycle import RunState
from agent0.run.monitors import guards
from agent0.run.monitors.actions import changes
from events.base import Event
from events.runs import IterationMeasured
from handlers import on


@on(IterationMeasured)
async def guard_run(event: IterationMeasured, run: RunState) -> list[Event]:
    """What every guard makes of the measures up to this event."""
    return [effect for name, watch in guards().items() for effect in changes(name, watch, run)]
