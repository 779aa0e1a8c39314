"""Answers that come in parts: a server that is away shows in seconds, however long its answer is."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, nullcontext
from typing import Any, Protocol, TypeVar

from agent0.errors import DependencyError, TransientError
from infra.models.calls.first_words import awaited

SILENT_S = 30.0
"""Seconds without a part in the middle of an answer after which its server counts as away."""

RATE_LIMITS = "ratelimit"
"""Is in the name of every header about rate limits."""

T = TypeVar("T")
UNREADABLE: tuple[type[Exception], ...] = (KeyError, IndexError, TypeError, ValueError, AttributeError)
"""What reading a part raises that is not of the form it should have."""


class Read(Protocol):
    """An answer as far as it was read."""

    def add(self, part: Any) -> None:
        """Read one more part."""

    @property
    def begun(self) -> bool:
        """Whether a word was written."""

    @property
    def whole(self) -> bool:
        """Whether the server said that it had ended."""

    @property
    def said(self) -> str:
        """The text that was written so far, without calls."""


def rate_limits(headers: Mapping[str, str]) -> dict[str, str]:
    """Pick the headers of an answer that name rate limits."""
    return {name.lower(): value for name, value in headers.items() if RATE_LIMITS in name.lower()}


async def timely(parts: AsyncGenerator[T], server: str, where: str, first_s: float) -> AsyncGenerator[T]:
    """Pass on the parts of an answer of ``server``, named to users with ``where`` it is.

    Raises:
        TransientError: its first part took longer than ``first_s`` seconds.
        DependencyError: it fell silent for ``SILENT_S`` in the middle.
    """
    begun = False
    async with aclosing(parts):
        while True:
            try:
                async with asyncio.timeout(SILENT_S if begun else first_s):
                    with nullcontext() if begun else awaited(where):
                        part = await anext(parts, None)
            except TimeoutError as error:
                if begun:
                    why = f"It fell silent in the middle of an answer ({where})."
                    raise DependencyError(server, why, "See its log.") from error
                why = f"It wrote no word in {first_s:g} s ({where})."
                fix = "Raise timeout_s, lower parallel, or take a smaller model."
                raise TransientError(f"{server} took too long.", why, fix) from error
            if part is None:
                return
            begun = True
            yield part


async def read_whole(
    parts: AsyncGenerator[Any],
    found: Read,
    where: str,
    first_s: float,
    failures: tuple[type[Exception], ...],
    refusal: Callable[[Exception], Exception],
    listen: Callable[[str], None] | None = None,
) -> tuple[float, float]:
    """Read all ``parts`` of an answer of the server at ``where`` into ``found``. ``listen`` hears its text so far.

    Returns the seconds until its first word (all of them, where it wrote none) and until its end.

    Raises:
        Exception: what ``refusal`` makes of one of ``failures``, or of a part that cannot be read.
        TransientError, DependencyError: as ``timely``; or the answer ended before it was whole.
    """
    start, first = time.monotonic(), None
    told = timely(parts, "The server of models", f"At {where}.", first_s)
    try:
        async with aclosing(told):
            async for part in told:
                found.add(part)
                first = first or (time.monotonic() if found.begun else None)
                if listen and found.begun:
                    listen(found.said)
    except failures + UNREADABLE as error:
        raise refusal(error) from None  # its text may quote what was written
    if not found.whole:
        raise TransientError("The server's answer ended before it was whole.", f"At {where}.")
    end = time.monotonic()
    return (first or end) - start, end - start
