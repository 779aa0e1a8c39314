"""Caches results of pure tools by content. Students of one task make the same call many times; it is run once."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from agent0.events.base import sha256
from agent0.events.values import ToolResult, ToolState
from agent0.tools.snapshots import Files

Outcome = tuple[ToolResult, Files]

_LASTING = (ToolState.OK, ToolState.ERROR)
"""What the code itself did. A limit that was hit says something about the machine too: it is tried again."""


class ToolCache:
    """The last ``size`` results with the work folders they left, in memory, up to ``room`` bytes.

    Identical calls at one time share one execution.
    """

    def __init__(self, size: int = 4096, room: int = 64 << 20) -> None:
        self._size, self._room = size, room
        self._held = 0
        self._results: OrderedDict[str, Outcome] = OrderedDict()
        self._running: dict[str, asyncio.Future[Outcome]] = {}

    async def get(self, key: Any, run: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Return the stored outcome of ``key``, any JSON (``cached`` is True), or that of ``run``.

        An exception of ``run`` reaches every waiter.
        """
        name = sha256(json.dumps(key, sort_keys=True, ensure_ascii=True))
        if name in self._results:
            self._results.move_to_end(name)
            return self._results[name]
        running = self._running.get(name)
        if running is not None:
            # shielded: a waiter that is cancelled must not cancel the others' result
            return _cached(await asyncio.shield(running))
        task = asyncio.ensure_future(self._run(name, run))
        self._running[name] = task
        return await asyncio.shield(task)

    async def _run(self, name: str, run: Callable[[], Awaitable[Outcome]]) -> Outcome:
        try:
            outcome = await run()
            if outcome[0].state in _LASTING:
                self._keep(name, _cached(outcome))
            return outcome
        finally:
            del self._running[name]

    def _keep(self, name: str, outcome: Outcome) -> None:
        self._results[name] = outcome
        self._held += _size(outcome)
        while len(self._results) > self._size or (self._held > self._room and self._results):
            self._held -= _size(self._results.popitem(last=False)[1])


def _cached(outcome: Outcome) -> Outcome:
    result, files = outcome
    return result.model_copy(update={"cached": True}), files


def _size(outcome: Outcome) -> int:
    return sum(map(len, outcome[1].values()))
