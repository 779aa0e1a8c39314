"""Whose entry comes next: callers of a process take turns at a budget, and each process leaves room for others."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from time import monotonic

BURST_S, GAP_S, APART_S = 0.1, 0.01, 0.005
"""A process that appended for BURST_S, each entry within APART_S of the one before, pauses for GAP_S and twice as long
as an append takes. Without a pause no other process has time to read the newest entry and append behind it."""


class Turns:
    """Keeps callers of one process apart at each budget, and other processes in turn."""

    def __init__(self) -> None:
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._burst = self._ended = 0.0
        """When appends without a pause began, and when the last one ended."""

    @asynccontextmanager
    async def alone(self, tokens: Iterable[str]) -> AsyncIterator[None]:
        """One caller at a time at the budgets under ``tokens``, so that they do not conflict with each other."""
        async with AsyncExitStack() as stack:
            for token in sorted(set(tokens)):
                await stack.enter_async_context(self._locks[token])
            yield

    async def leave_room(self, began: float) -> None:
        """Pause after an append that began at ``began``, where many came before it without one."""
        ended = monotonic()
        if began - self._ended > APART_S:
            self._burst = began
        if ended - self._burst > BURST_S:
            await asyncio.sleep(GAP_S + 2 * (ended - began))
            self._burst = ended = monotonic()
        self._ended = ended
