"""Part of the rim: waiting for a model server that is away, outside of runs. Meanwhile one item at a time asks it, and
the others wait for their turn; that it is away and that it is back are said once."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from agent0.errors import (
    BudgetExhaustedError,
    DependencyError,
    ModelChangedError,
    NotSentError,
    ServerBusyError,
    TransientError,
)

FIRST_S, LONGEST_S = 1.0, 30.0
"""Seconds to the first further try, and from one to the next at most."""
TRIES = 3
"""Failures of an item while others are answered: then it is not the server."""
T = TypeVar("T")
_LASTING = (BudgetExhaustedError, ModelChangedError)
"""Dependencies that waiting does not bring back."""


class ServerWait:
    """The wait of the benchmark run ``run`` for its model server. ``resume`` is the command that goes on later,
    ``answered`` whether the server has answered before; ``give_up_after_s`` 0: never."""

    def __init__(
        self,
        say: Callable[[str], object],
        run: str,
        resume: str,
        *,
        answered: bool,
        give_up_after_s: float = 0.0,
    ) -> None:
        self._say, self._run, self._resume = say, run, resume
        self._reached, self._limit_s = answered, give_up_after_s
        self._turn = asyncio.Lock()
        self._since: float | None = None
        """When the server went away; None while it is there."""
        self._delay_s, self._said, self._answers = FIRST_S, False, 0
        self._last: DependencyError | TransientError | None = None
        self._failure: Exception | None = None

    async def through(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what ``ask`` returns, asked again where the server was away.

        Raises:
            DependencyError: it was never there, was away for too long, or waiting does not help.
            TransientError: it fails for this item alone.
        """
        alone, answers = 0, self._answers
        while True:
            try:
                if self._since is None:
                    return await self._ask(ask)
                async with self._turn:
                    if self._since is not None:
                        await self._pause()
                    return await self._ask(ask)
            except (DependencyError, TransientError) as error:
                if error is self._failure:
                    raise
                self._check(error)
                alone += isinstance(error, TransientError) and self._answers > answers
                answers = self._answers
                if alone == TRIES:
                    raise
                self._note(error)

    async def _ask(self, ask: Callable[[], Awaitable[T]]) -> T:
        answer = await ask()
        self._reached, self._answers = True, self._answers + 1
        if self._since is not None and self._said:
            self._say(f"The server answers again; {self._run} goes on.")
        self._since, self._said, self._delay_s = None, False, FIRST_S
        return answer

    def _check(self, error: DependencyError | TransientError) -> None:
        """Raise what waiting does not mend."""
        unreached = isinstance(error, NotSentError) and not isinstance(error, ServerBusyError)
        if isinstance(error, _LASTING) or (unreached and not self._reached):
            raise error
        self._reached = self._reached or not unreached

    def _note(self, error: DependencyError | TransientError) -> None:
        """The server is away; a single failure that may pass is not spoken of."""
        if not self._said and (self._since is not None or isinstance(error, DependencyError)):
            self._said = True
            self._say(f"{self._run} waits: {error} Nothing is lost. To stop it and go on later: {self._resume}")
        self._since = time.monotonic() if self._since is None else self._since
        self._last = error

    async def _pause(self) -> None:
        """Wait for another try; raises DependencyError where the patience is over."""
        if self._failure:
            raise self._failure
        error, waited_s = self._last, time.monotonic() - (self._since or 0.0)
        if self._limit_s and waited_s >= self._limit_s:
            what = error.dependency if isinstance(error, DependencyError) else "The model server"
            why = f"{error} {self._run} waited {waited_s:.0f} s for it (run.give_up_after is {self._limit_s:g})."
            self._failure = DependencyError(what, why, self._resume)
            raise self._failure from error
        after_s = error.after_s if isinstance(error, ServerBusyError) else 0.0
        pause_s = min(max(self._delay_s, after_s), LONGEST_S)
        self._delay_s *= 2
        await asyncio.sleep(min(pause_s, self._limit_s - waited_s) if self._limit_s else pause_s)
