"""Slots of a model server: how many calls to it are under way at once, and how a busy one is asked again.

A server that is asked more than it answers at once queues the rest, where their time runs out. So callers wait here,
and a call's own time begins when it has its slot.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from heapq import heappop, heappush
from itertools import count
from time import monotonic
from typing import TypeVar

from agent0.errors import DependencyError, ServerBusyError

FIRST_S, LONGEST_S = 0.1, 5.0
"""Seconds before a busy server is asked again: at first, and at most."""

T = TypeVar("T")


class BusyError(Exception):
    """A server has no room for a call right now. ``after_s``: seconds after which it wants to be asked again, 0 where
    it did not say."""

    def __init__(self, why: str, after_s: float = 0.0) -> None:
        super().__init__(why)
        self.after_s = after_s


class ClosedError(DependencyError):
    """The server closed a connection before it answered. One that was kept from an earlier call may be closed at any
    time, so that the request never came there."""


class Slots:
    """At most ``parallel`` calls at once to ``server``: later turns of a conversation first, so that what was begun is
    finished before more is begun, and equal ones in the order in which they came.

    A server that is still busy after ``patience_s`` seconds counts as a dependency that is away: callers then wait for
    it as for one that is down, which uses up none of their tries. With a patience of 0 a busy server is asked once:
    whoever calls asks again.
    """

    def __init__(self, server: str, parallel: int, patience_s: float) -> None:
        self._server, self._patience_s = server, patience_s
        self._free = parallel
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()

    @contextlib.asynccontextmanager
    async def slot(self, turn: int = 0) -> AsyncIterator[None]:
        """Hold one slot; wait for it first, behind those of later turns."""
        if self._free:
            self._free -= 1
        else:
            handed_over = asyncio.get_running_loop().create_future()
            heappush(self._waiting, (-turn, next(self._arrivals), handed_over))
            try:
                await handed_over
            except asyncio.CancelledError:
                if not handed_over.cancelled():
                    self._give_back()
                raise
        try:
            yield
        finally:
            self._give_back()

    def _give_back(self) -> None:
        """Hand a slot to whoever waits for it first."""
        while self._waiting:
            handed_over = heappop(self._waiting)[2]
            if not handed_over.done():
                handed_over.set_result(None)
                return
        self._free += 1

    async def call(self, ask: Callable[[], Awaitable[T]], turn: int = 0) -> T:
        """Return what ``ask`` returns, called in a slot for turn ``turn``, and again while it raises ``BusyError``.

        Raises:
            ServerBusyError: the server is still busy after ``patience_s``.
        """
        async with self.slot(turn):
            began, delay_s = monotonic(), FIRST_S
            while True:
                try:
                    return await ask()
                except BusyError as busy:
                    wait_s = max(delay_s, busy.after_s)
                    if monotonic() - began + wait_s > self._patience_s:
                        why = f"It has been busy for {self._patience_s:g} seconds: {busy}"[:300]
                        fix = "Lower run.<role>.parallel."
                        raise ServerBusyError(self._server, why, fix, busy.after_s) from busy
                await asyncio.sleep(wait_s)
                delay_s = min(2 * delay_s, LONGEST_S)
