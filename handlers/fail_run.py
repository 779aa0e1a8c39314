"""Ends a run that waited too long for a dependency."""

from agent0.events.alarms import DependencyLost
from agent0.events.base import Event
from agent0.handlers import on
from agent0.run.lifecycle import RunState
from agent0.run.run_failure import dependency_failed


@on(DependencyLost, plugins=False)
async def fail_run(event: DependencyLost, run: RunState) -> list[Event]:
    """The run fails where the dependency was away for as long as its settings allow."""
    return dependency_failed(run, event)
