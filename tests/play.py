"""A whole run in memory: the same handlers, fold and ids as on the log, without one. For tests, examples and first
trials.

Failures are raised: turning them into events is the bus's work.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent0.events.base import Recorded, effect_id, record
from agent0.handlers import Handler
from agent0.handlers import handlers as registered
from agent0.provenance.fork_history import Branches, past_of
from agent0.run.lifecycle import RunState, evolve

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)

Pick = Callable[[int], int]
"""Chooses which of ``n`` waiting reactions comes next."""


@dataclass(frozen=True)
class Reaction:
    """A handler's reaction to a cause that has not run yet; ``run`` is the fold up to and including the cause."""

    cause: Recorded
    run: RunState
    handler: Handler


class Played:
    """The events so far, in stream order; implements ``agent0.ports.storage.History``."""

    def __init__(self, past: Sequence[Recorded] = ()) -> None:
        self.recorded: list[Recorded] = [*past]

    async def read(
        self, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0
    ) -> AsyncIterator[Recorded]:
        """As ``History.read``."""
        for recorded in self.recorded[after : until or None]:
            if recorded.run == run and (not types or recorded.type in types):
                yield recorded


async def play(
    started: Recorded,
    ports: Mapping[str, Any],
    handlers: Mapping[str, Handler] | None = None,
    clock: Callable[[], datetime] = lambda: EPOCH,
    pick: Pick = lambda _: 0,
    past: Sequence[Recorded] = (),
) -> list[Recorded]:
    """React to ``started`` and to whatever follows until no reaction is left; returns all events in stream order, seq
    from 1.

    ``handlers`` None: every registered one. ``ports`` needs no ``history``: the events so far are it. The order is that
    of the stream unless ``pick`` chooses another; handlers with one in flight always keep the stream's order. ``past``
    is what the stream holds already: of other runs, or of the one that ``started`` forks from.
    """
    chosen = registered() if handlers is None else handlers
    played = Played(past)
    ports = {"history": Branches(played), **ports}
    owed: list[Reaction] = []
    state: RunState | None = None
    async for recorded in past_of(Played([*past, started]), started.run):
        state = evolve(state, recorded)
    for recorded in past:
        state = evolve(state, recorded) if recorded.run == started.run else state
    new = [started]
    while new or owed:
        for recorded in new:
            stored = recorded.model_copy(update={"seq": len(played.recorded) + 1})
            played.recorded.append(stored)
            state = evolve(state, stored)
            owed += _owed(stored, state, chosen)
        new = await _react(owed.pop(_next(owed, pick)), ports, clock) if owed and _going(state) else []
        if not new and not _going(state):
            break
    return played.recorded


def _owed(cause: Recorded, state: RunState | None, chosen: Mapping[str, Handler]) -> list[Reaction]:
    return [Reaction(cause, state, one) for one in chosen.values() if state and cause.type in one.events]


def _going(state: RunState | None) -> bool:
    return state is not None and state.status == "running"


def _next(owed: Sequence[Reaction], pick: Pick) -> int:
    """The place of the reaction to come: of a handler with one in flight, only its oldest may."""
    seen: set[str] = set()
    free = []
    for place, reaction in enumerate(owed):
        name = reaction.handler.name
        if reaction.handler.in_flight > 1 or name not in seen:
            free.append(place)
        seen.add(name)
    return free[pick(len(free))]


async def _react(reaction: Reaction, ports: Mapping[str, Any], clock: Callable[[], datetime]) -> list[Recorded]:
    cause, name = reaction.cause, reaction.handler.name
    return [
        record(event, run=cause.run, time=clock(), id=effect_id(cause.id, name, n), cause=cause.id, handler=name)
        for n, event in enumerate(await reaction.handler(cause, reaction.run, ports))
    ]


def finished(playing: Coroutine[Any, Any, list[Recorded]]) -> list[Recorded]:
    """What ``playing`` (of ``play``) comes to, in a thread of its own: also where a test's event loop runs already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, playing).result()
