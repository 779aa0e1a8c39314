"""Concurrent requests become batches: wait a moment for company, take one key a batch, share fairly among groups."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

Request = TypeVar("Request")
Answer = TypeVar("Answer")
WAIT_S, ROUNDS = 0.004, 8
"""Waits before a batch starts while requests trickle in one by one."""


@dataclass(frozen=True)
class _Waiting(Generic[Request, Answer]):
    request: Request
    key: Hashable
    size: int
    answer: "asyncio.Future[Answer]"


class Batcher(Generic[Request, Answer]):
    """Gathers ``ask`` calls for ``run(key, batch)``, which answers each or gives an exception in its place.

    Groups (runs) take turns, one request each, so a large run does not starve a small one. Within a batch all share
    a key (an adapter) and are sorted by size, so that a batch split further on is padded little.
    """

    def __init__(
        self, run: "Callable[[Hashable, Sequence[Request]], Awaitable[Sequence[Answer | Exception]]]", *, max_batch: int
    ) -> None:
        self._run, self._max = run, max_batch
        self._groups: dict[str, deque[_Waiting[Request, Answer]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def ask(self, request: Request, *, key: Hashable, group: str, size: int) -> Answer:
        """The answer to one request."""
        waiting = _Waiting[Request, Answer](request, key, size, asyncio.get_running_loop().create_future())
        self._groups.setdefault(group, deque()).append(waiting)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await waiting.answer

    async def close(self) -> None:
        """Stop; whoever waits is cancelled."""
        task, self._task = self._task, None
        if task:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for group in self._groups.values():
            for waiting in group:
                waiting.answer.cancel()
        self._groups.clear()

    async def _work(self) -> None:
        while self._groups:
            await self._gather()
            batch = self._next()
            if batch:
                await self._answer(sorted(batch, key=lambda waiting: waiting.size))

    async def _gather(self) -> None:
        """Until nobody has come for ``wait_s``, a batch is full, or it has been long enough."""
        before = -1
        for _ in range(ROUNDS):
            count = sum(map(len, self._groups.values()))
            if not before < count < self._max:
                return
            before = count
            await asyncio.sleep(WAIT_S)

    def _next(self) -> "list[_Waiting[Request, Answer]]":
        batch: list[_Waiting[Request, Answer]] = []
        turn = deque(self._groups)
        first = turn[0]
        while turn and len(batch) < self._max:
            name = turn.popleft()
            waiting = self._take(self._groups[name], batch[0].key if batch else None, any_key=not batch)
            if waiting:
                batch.append(waiting)
                turn.append(name)
        self._groups[first] = self._groups.pop(first)  # the next batch begins with another group
        self._groups = {name: group for name, group in self._groups.items() if group}
        return batch

    @staticmethod
    def _take(
        group: "deque[_Waiting[Request, Answer]]", key: Hashable, *, any_key: bool
    ) -> "_Waiting[Request, Answer] | None":
        for index, waiting in enumerate(group):
            if waiting.answer.done():
                continue
            if any_key or waiting.key == key:
                del group[index]
                return waiting
        if all(waiting.answer.done() for waiting in group):
            group.clear()
        return None

    async def _answer(self, batch: "list[_Waiting[Request, Answer]]") -> None:
        try:
            answers: Sequence[Answer | Exception] = await self._run(
                batch[0].key, [waiting.request for waiting in batch]
            )
        except asyncio.CancelledError:
            for waiting in batch:
                waiting.answer.cancel()
            raise
        except Exception as error:  # each of those who wait is told
            answers = [error] * len(batch)
        for waiting, answer in zip(batch, answers, strict=True):
            if waiting.answer.done():
                continue
            if isinstance(answer, Exception):
                waiting.answer.set_exception(answer)
            else:
                waiting.answer.set_result(answer)
