"""Ends a run that waited too long for a dependency."""

from agent0.run.lifecycle import RunState
from agent0.run.run_failure import dependency_failed
from events.alarms import DependencyLost
from events.base import Event
from handlers import on


@on(DependencyLost, plugins=False)
async def fail_run(event: DependencyLost, run: RunState) -> list[Event]:
    """The run fails where the dependency was away for as long as its settings allow."""
    return dependency_failed(run, event)
