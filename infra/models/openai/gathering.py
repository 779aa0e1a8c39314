"""Gathers requests for turns of one prompt that come together, so that a server reads the prompt once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from agent0.ports.models import GenerateRequest, Generation

WAIT_S = 0.02
"""Seconds that the first request of a prompt waits for more of them."""
Write = Callable[[Sequence[GenerateRequest]], Awaitable[Sequence[Generation]]]
"""Requests that differ in their seeds alone to a turn each, in one call."""


@dataclass
class _RequestGroup:
    """Requests that are one but for their seeds, and who waits for each."""

    what: GenerateRequest
    waiting: "list[tuple[GenerateRequest, asyncio.Future[Generation]]]" = field(default_factory=list)
    full: asyncio.Event = field(default_factory=asyncio.Event)


class Gatherer:
    """Calls ``write`` with requests for turns of one prompt, in the order of their seeds."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._open: list[_RequestGroup] = []
        self._calls: set[asyncio.Task[None]] = set()

    async def ask(self, request: GenerateRequest, most: int) -> Generation:
        """Return the turn of ``request``, one of at most ``most`` in a call; errors are those of ``write``."""
        what = replace(request, sampling=replace(request.sampling, seed=0), attempt="")
        group = next((candidate for candidate in self._open if candidate.what == what), None)
        if group is None:
            group = _RequestGroup(what)
            self._open.append(group)
            call = asyncio.create_task(self._call(group))
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
        mine: asyncio.Future[Generation] = asyncio.get_running_loop().create_future()
        group.waiting.append((request, mine))
        if len(group.waiting) >= most:
            self._open.remove(group)
            group.full.set()
        return await mine

    async def close(self) -> None:
        """Give up; whoever waits is cancelled."""
        for call in tuple(self._calls):
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    async def _call(self, group: _RequestGroup) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(group.full.wait(), WAIT_S)
        if group in self._open:
            self._open.remove(group)
        there = sorted(
            (entry for entry in group.waiting if not entry[1].done()), key=lambda entry: entry[0].sampling.seed
        )
        try:
            if there:
                [came] = await asyncio.gather(self._write([request for request, _ in there]), return_exceptions=True)
                _tell([waiting for _, waiting in there], came)
        finally:
            for _, waiting in there:
                waiting.cancel()  # where it has not been told


def _tell(waiting: "Sequence[asyncio.Future[Generation]]", came: Sequence[Generation] | BaseException) -> None:
    for n, future in enumerate(waiting):
        if future.done():
            continue
        if isinstance(came, BaseException):
            future.set_exception(came)
        else:
            future.set_result(came[n])
