"""A run's state at any position, from the nearest snapshot that the log bears out, or from the beginning."""

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from agent0.events.base import Recorded
from agent0.infra.log.event_log import Log
from agent0.infra.log.state_snapshots import Snapshots
from agent0.provenance.fork_history import ancestry

Evolve = Callable[[Any, Recorded], Any]
"""(state or None, event) -> state or None: pure, its result immutable."""


async def state_before(log: Log, run: str, evolve: Evolve, snapshots: Snapshots | None = None) -> Any:
    """What ``run`` began with: of a fork the state of its parent there, of any other run None."""
    path = (await ancestry(log, run))[:-1]
    snapshot, index = None, 0
    for number, stretch in enumerate(path):
        if snapshots and (newer := await snapshots.newest(stretch.run, stretch.until)):
            snapshot, index = newer, number
    state: Any = snapshot.state if snapshot else None
    for number, stretch in enumerate(path[index:]):
        after = snapshot.seq if snapshot and number == 0 else 0
        state = await _folded(log, stretch.run, state, after, stretch.until, evolve)
    return state


async def state_until(log: Log, run: str, until: int, evolve: Evolve, snapshots: Snapshots | None = None) -> Any:
    """The state of ``run`` after its last event up to ``until`` (0: its present end); its parent's before its start."""
    snapshot = await snapshots.newest(run, until) if snapshots else None
    if snapshot:
        return await _folded(log, run, snapshot.state, snapshot.seq, until, evolve)
    return await _folded(log, run, await state_before(log, run, evolve, snapshots), 0, until, evolve)


async def _folded(log: Log, run: str, state: Any, after: int, until: int, evolve: Evolve) -> Any:
    if until and until <= after:
        return state
    async with aclosing(log.read(run, after=after, until=until)) as events:  # type: ignore[type-var]
        async for recorded in events:
            state = evolve(state, recorded)
    return state
