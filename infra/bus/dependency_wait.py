"""Waiting for what is away. One reaction tries again and again, the others wait for it; no delivery is used up.

Who waits keeps its place, so a wait ends early where its run is stopped or this process stops.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import Any

from agent0.errors import DependencyError, bare_url
from agent0.events.alarms import DependencyLost, DependencyRestored
from agent0.events.base import Event, Recorded
from agent0.infra.bus.run_views import RunView

LONGEST_S = 30.0

Report = Callable[[Event, Recorded], Awaitable[object]]
"""Stores an event because of a cause."""
Key = tuple[str, str]
"""(dependency, handler)."""


class Outages:
    """What the handlers of this process wait for."""

    def __init__(self, report: Report, delay_s: float, clock: Callable[[], datetime]) -> None:
        self.report, self.delay_s, self.clock = report, delay_s, clock
        self.open: dict[Key, asyncio.Event] = {}
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End every wait, also those to come: their messages are given back."""
        self._closing.set()

    async def until(self, waited: Coroutine[Any, Any, object], stopped: asyncio.Event | None) -> None:
        """Wait for ``waited``, or until ``stopped``.

        Raises:
            asyncio.CancelledError: this process stops.
        """
        waits = [waited, self._closing.wait(), *([stopped.wait()] if stopped else [])]
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if self._closing.is_set():
            raise asyncio.CancelledError("this process stops")


class Probe:
    """One reaction's part in the waiting; ``end`` it whatever happens, or the others wait for ever."""

    def __init__(self, outages: Outages, handler: str, view: RunView, cause: Recorded) -> None:
        self._outages, self._handler, self._view, self._cause = outages, handler, view, cause
        self._tries: dict[Key, int] = {}
        self._late: set[Key] = set()
        """What was waited for as long as the run does."""

    async def wait(self, error: DependencyError, stopped: asyncio.Event | None) -> None:
        """Until it is worth another try, or until ``stopped``. The first to miss something says so in the log, once
        while it lasts, and again when the run has waited long enough.

        Raises:
            asyncio.CancelledError: this process stops.
        """
        key = (error.dependency, self._handler)
        if key in self._outages.open and key not in self._tries:
            await self._outages.until(self._outages.open[key].wait(), stopped)
            return
        if key not in self._tries:
            self._tries[key], self._outages.open[key] = 0, asyncio.Event()
            if key not in self._view.lost:
                self._view.lost[key] = self._outages.clock()
                await self._tell(error, key)
        delay = min(self._outages.delay_s * 2.0 ** self._tries[key], LONGEST_S)
        if (limit := self._view.give_up_after) and key not in self._late:
            since = self._view.lost.setdefault(key, self._outages.clock())
            waited = (self._outages.clock() - since).total_seconds()
            delay = max(0.0, min(delay, limit - waited))
            if waited >= limit:
                self._late.add(key)
                await self._tell(error, key, waited)
        self._tries[key] += 1
        await self._outages.until(asyncio.sleep(delay), stopped)

    async def _tell(self, error: DependencyError, key: Key, waited_s: float = 0) -> None:
        lost = DependencyLost(dependency=key[0], waiting=key[1], message=bare_url(str(error))[:500], waited_s=waited_s)
        await self._outages.report(lost, self._cause)

    async def came_through(self) -> None:
        """A call got an answer: what this handler waited for is back, also where another process had missed it."""
        lost = [key for key in self._view.lost if key[1] == self._handler]
        for key in lost:
            if key in self._tries or key not in self._outages.open:
                self._view.lost.pop(key, None)
                await self._outages.report(DependencyRestored(dependency=key[0], waiting=key[1]), self._cause)

    def end(self) -> None:
        """Let the others try."""
        for key in self._tries:
            self._outages.open.pop(key).set()
