"""Results of pure tools by content. Students of one task write the same call many times; it is run once."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from events.base import sha256
from events.values import ToolResult, ToolState

_LASTING = (ToolState.OK, ToolState.ERROR)
"""What the code itself did. A limit that was hit says something about the machine too: it is tried again."""


class ToolCache:
    """The last ``size`` results, in memory. Identical calls at one time share one execution."""

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._results: OrderedDict[str, ToolResult] = OrderedDict()
        self._running: dict[str, asyncio.Future[ToolResult]] = {}

    async def get(self, tool: str, arguments: dict[str, Any], run: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        """The stored result (``cached`` is True), or that of ``run``; its exception reaches every waiter."""
        key = sha256(json.dumps([tool, arguments], sort_keys=True, ensure_ascii=True))
        if key in self._results:
            self._results.move_to_end(key)
            return self._results[key]
        running = self._running.get(key)
        if running is not None:
            # shielded: a waiter that is cancelled must not cancel the others' result
            return (await asyncio.shield(running)).model_copy(update={"cached": True})
        task = asyncio.ensure_future(self._run(key, run))
        self._running[key] = task
        return await asyncio.shield(task)

    async def _run(self, key: str, run: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        try:
            result = await run()
            if result.state in _LASTING:
                self._results[key] = result.model_copy(update={"cached": True})
                if len(self._results) > self._size:
                    self._results.popitem(last=False)
            return result
        finally:
            del self._running[key]
