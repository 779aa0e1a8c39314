"""Monitors a run: raises and resolves alarms, pauses the run or goes back to a better checkpoint."""

from agent0.events.base import Event
from agent0.events.runs import IterationMeasured
from agent0.handlers import on
from agent0.run.lifecycle import RunState
from agent0.run.monitors import guards
from agent0.run.monitors.actions import guard_effects


@on(IterationMeasured)
async def guard_run(event: IterationMeasured, run: RunState) -> list[Event]:
    """Run every monitor of such runs on the measures up to this event; returns their effects."""
    return [effect for name, watch in guards(run.config).items() for effect in guard_effects(name, watch, run)]
