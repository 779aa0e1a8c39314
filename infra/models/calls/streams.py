"""Answers that come in parts: a server that is away shows in seconds, however long its answer is."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from agent0.errors import DependencyError, TransientError, clean_text
from agent0.infra.models.calls.first_words import awaited
from agent0.settings import ActorConfig

RATE_LIMITS = "ratelimit"
"""Is in the name of every header about rate limits."""

T = TypeVar("T")
UNREADABLE: tuple[type[Exception], ...] = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What reading a part raises that is not of the form it should have, or nested without end."""


@dataclass(frozen=True)
class Patience:
    """Seconds that a server may take until its first word, and between two of its words."""

    first_s: float
    silent_s: float

    @classmethod
    def of(cls, actor: ActorConfig) -> "Patience":
        """As ``actor`` is set."""
        return cls(actor.timeout_s, actor.silent_s)


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
    def prose(self) -> str:
        """The text that was written so far, without calls."""


def rate_limits(headers: Mapping[str, str]) -> dict[str, str]:
    """Pick the headers of an answer that name rate limits."""
    return {name.lower(): value for name, value in headers.items() if RATE_LIMITS in name.lower()}


async def timely(parts: AsyncGenerator[T], server: str, where: str, patience: Patience) -> AsyncGenerator[T]:
    """Pass on the parts of an answer of ``server``, named to users with ``where`` it is.

    Raises:
        TransientError: its first part took longer than ``patience`` has.
        DependencyError: it fell silent in the middle for longer than that.
    """
    begun = False
    async with aclosing(parts):
        while True:
            try:
                async with asyncio.timeout(patience.silent_s if begun else patience.first_s):
                    with nullcontext() if begun else awaited(where):
                        part = await anext(parts, None)
            except TimeoutError as error:
                if begun:
                    why = f"It wrote nothing for {patience.silent_s:g} s in the middle of an answer ({where})."
                    raise DependencyError(server, why, "See its log; or raise silent_s.") from error
                why = f"It wrote no word in {patience.first_s:g} s ({where})."
                fix = "Raise timeout_s, lower parallel, or take a smaller model."
                raise TransientError(f"{server} took too long.", why, fix) from error
            if part is None:
                return
            begun = True
            yield part


def _without_half(text: str) -> str:
    """``text`` without a first half of a surrogate pair at its end, whose second half may come yet."""
    return text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text


async def read_whole(
    parts: AsyncGenerator[Any],
    reading: Read,
    where: str,
    patience: Patience,
    failures: tuple[type[Exception], ...],
    refusal: Callable[[Exception], Exception],
    listen: Callable[[str], None] | None = None,
) -> tuple[float, float]:
    """Read all ``parts`` of an answer of the server at ``where`` into ``reading``. ``listen`` hears its text so far.

    Returns the seconds until its first word (all of them, where it wrote none) and until its end.

    Raises:
        Exception: what ``refusal`` makes of one of ``failures``, or of a part that cannot be read.
        TransientError, DependencyError: as ``timely``; or the answer ended before it was whole.
    """
    start, first = time.monotonic(), None
    stream = timely(parts, "The server of models", f"At {where}.", patience)
    try:
        async with aclosing(stream):
            async for part in stream:
                reading.add(part)
                first = first or (time.monotonic() if reading.begun else None)
                if listen and reading.begun:
                    listen(clean_text(_without_half(reading.prose)))
    except failures as error:
        raise refusal(error) from None  # its text may quote what was written
    if not reading.whole:
        raise TransientError("The server's answer ended before it was whole.", f"At {where}.")
    end = time.monotonic()
    return (first or end) - start, end - start
