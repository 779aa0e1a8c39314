"""Concurrent requests become batches that others join while they are answered: wait a moment for company, one key at a
time, share fairly among groups."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

Request = TypeVar("Request")
Answer = TypeVar("Answer")
Answers = Mapping[int, Answer | Exception]
WAIT_S, ROUNDS = 0.004, 8
"""Waits before a batch starts while requests trickle in one by one."""


@dataclass(frozen=True)
class _Waiting(Generic[Request, Answer]):
    request: Request
    key: Hashable
    size: int
    answer: "asyncio.Future[Answer]"


class Batcher(Generic[Request, Answer]):
    """Gathers ``ask`` calls for ``run(key, fresh, earlier)``, which takes in the requests ``fresh``, by number, and
    answers some of those that it has, or gives an exception in its place; ``earlier`` are the numbers of the others
    that have no answer yet. It is called until all have one.

    Groups (runs) take turns, one request each, so a large run does not starve a small one. All that are answered at a
    time share a key (an adapter); where a group's turn comes while its oldest request has another key, no request
    joins until all are answered.
    """

    def __init__(
        self,
        run: "Callable[[Hashable, Mapping[int, Request], Sequence[int]], Awaitable[Answers[Answer]]]",
        *,
        max_batch: int,
    ) -> None:
        self._run, self._max = run, max_batch
        self._groups: dict[str, deque[_Waiting[Request, Answer]]] = {}
        self._answering: dict[int, _Waiting[Request, Answer]] = {}
        self._numbers = count()
        self._pauses, self._changed = 0, asyncio.Condition()
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
        for group in (*self._groups.values(), self._answering.values()):
            for waiting in group:
                waiting.answer.cancel()
        self._groups.clear()
        self._answering.clear()

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Nothing is being answered within; those who ask wait."""
        self._pauses += 1
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: not self._answering)
            yield
        finally:
            self._pauses -= 1
            async with self._changed:
                self._changed.notify_all()

    async def _work(self) -> None:
        while self._groups or self._answering:
            if not self._answering:
                await self._gather()
                async with self._changed:
                    await self._changed.wait_for(lambda: not self._pauses)
            fresh = self._next() if self._groups and not self._pauses else []
            if fresh or self._answering:
                await self._answer(sorted(fresh, key=lambda waiting: waiting.size))
            async with self._changed:
                self._changed.notify_all()

    async def _gather(self) -> None:
        """Until nobody has come for ``wait_s``, a batch is full, or it has been long enough."""
        before = -1
        for _ in range(ROUNDS):
            waiting = sum(map(len, self._groups.values()))
            if not before < waiting < self._max:
                return
            before = waiting
            await asyncio.sleep(WAIT_S)

    def _next(self) -> "list[_Waiting[Request, Answer]]":
        """Who joins those that are being answered."""
        batch: list[_Waiting[Request, Answer]] = []
        turn = deque(self._groups)
        first = turn[0]
        others = next(iter(self._answering.values()), None)
        while turn and len(batch) + len(self._answering) < self._max:
            name = turn.popleft()
            beside = others or next(iter(batch), None)
            waiting = self._take(self._groups[name], beside, in_order=name == first and not batch)
            if waiting:
                batch.append(waiting)
                turn.append(name)
            elif name == first and not batch and self._groups[name]:
                return []
        self._groups[first] = self._groups.pop(first)  # the next batch begins with another group
        self._groups = {name: group for name, group in self._groups.items() if group}
        return batch

    @staticmethod
    def _take(
        group: "deque[_Waiting[Request, Answer]]", beside: "_Waiting[Request, Answer] | None", *, in_order: bool
    ) -> "_Waiting[Request, Answer] | None":
        """Take the first with the key of ``beside`` out of ``group``; ``in_order``: only if it is the oldest."""
        while group and group[0].answer.done():
            group.popleft()
        for index, waiting in enumerate(group):
            if not waiting.answer.done() and (beside is None or waiting.key == beside.key):
                del group[index]
                return waiting
            if in_order:
                return None
        return None

    async def _answer(self, fresh: "Sequence[_Waiting[Request, Answer]]") -> None:
        earlier = tuple(self._answering)
        numbered = dict(zip(self._numbers, fresh, strict=False))
        self._answering |= numbered
        key = next(iter(self._answering.values())).key
        answers: Answers[Answer]
        try:
            answers = await self._run(key, {number: waiting.request for number, waiting in numbered.items()}, earlier)
        except Exception as error:  # each of those who wait is told
            answers = dict.fromkeys(self._answering, error)
        for number, answer in answers.items():
            waiting = self._answering.pop(number)
            if waiting.answer.done():
                continue
            if isinstance(answer, Exception):
                waiting.answer.set_exception(answer)
            else:
                waiting.answer.set_result(answer)
