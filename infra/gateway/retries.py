"""The one place where a call is tried again. Clients of vendors try once, and every try is charged and noted."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential

from agent0.errors import NotSentError, ServerBusyError, TransientError
from agent0.infra.models.calls.slots import ClosedError

AGAIN = (NotSentError, TransientError, ClosedError)
"""Failures that may pass: a busy server, one that cannot be reached, that failed (5xx), took too long or broke off."""
FIRST_S, LATER_S = 0.5, 30.0

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


class Retries:
    """Up to ``count`` further tries, with random, growing pauses. A server that says when it wants to be asked again is
    asked then; one that wants more than ``longest_s`` is given up."""

    def __init__(self, count: int, longest_s: float, sleep: Sleep = asyncio.sleep) -> None:
        self._count, self._longest_s, self._sleep = count, longest_s, sleep
        self._pause = wait_random_exponential(multiplier=FIRST_S, max=LATER_S)

    async def call(self, ask: Callable[[int], Awaitable[T]]) -> T:
        """Return what ``ask`` returns, given how many tries came before; raises what its last try raised."""
        tries = AsyncRetrying(
            stop=stop_after_attempt(self._count + 1),
            wait=self._wait_s,
            retry=retry_if_exception(lambda error: isinstance(error, AGAIN) and _after_s(error) <= self._longest_s),
            sleep=self._sleep,
            reraise=True,
        )
        async for attempt in tries:
            with attempt:
                return await ask(attempt.retry_state.attempt_number - 1)
        raise AssertionError("a try returns or raises")

    def _wait_s(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        return max(_after_s(error), self._pause(state))


def _after_s(error: BaseException | None) -> float:
    return error.after_s if isinstance(error, ServerBusyError) else 0.0
