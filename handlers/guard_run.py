"""Monitors a run: raises and resolves alarms, pauses the run or goes back to a better checkpoint."""

from agent0.run.lifecycle import RunState
from agent0.run.monitors import guards
from agent0.run.monitors.actions import guard_effects
from events.base import Event
from events.runs import IterationMeasured
from handlers import on


@on(IterationMeasured)
async def guard_run(event: IterationMeasured, run: RunState) -> list[Event]:
    """Run every monitor of such runs on the measures up to this event; returns their effects."""
    return [effect for name, watch in guards(run.config).items() for effect in guard_effects(name, watch, run)]
