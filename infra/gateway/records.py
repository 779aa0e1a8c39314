"""Requests and answers as JSON, as the cache and the artifacts keep them."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from time import monotonic

from agent0.events.values import Usage
from agent0.ports.models import GenerateRequest, Generation, Served

TUPLES = ("token_ids", "logprobs", "prompt_ids", "ends", "margins")


def request_json(request: GenerateRequest) -> str:
    """Everything of ``request`` that an answer depends on, its seed and adapter included, in one canonical form: not
    what it is for."""
    fields = {
        "turns": [turn.model_dump(exclude_defaults=True, exclude={"thinking"}) for turn in request.turns],
        "tools": [asdict(tool) for tool in request.tools],
        "sampling": asdict(request.sampling),
        "adapter": request.adapter.sha256 if request.adapter else "",
        "prefill": request.prefill,
        "schema": request.schema,
    }
    return json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def answer_json(written: Generation) -> str:
    """An answer as it can be read again, without the rate limits of its moment."""
    served = {key: value for key, value in vars(written.served).items() if key != "limits"}
    fields = {**vars(written), "usage": written.usage.model_dump(), "served": served}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def read_answer(text: str) -> Generation:
    """Read what ``answer_json`` wrote.

    Raises:
        ValueError, TypeError, KeyError: it did not.
    """
    fields = json.loads(text)
    lists = {name: tuple(fields.get(name, ())) for name in TUPLES}
    return Generation(**{**fields, **lists, "usage": Usage(**fields["usage"]), "served": Served(**fields["served"])})


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
