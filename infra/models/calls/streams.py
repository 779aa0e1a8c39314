"""Answers that come in parts: a server that is away shows in seconds, however long its answer is."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, nullcontext
from typing import TypeVar

from agent0.errors import DependencyError, TransientError
from infra.models.calls.first_words import awaited

SILENT_S = 30.0
"""Seconds without a part in the middle of an answer after which its server counts as away."""

RATE_LIMITS = "ratelimit"
"""Is in the name of every header about rate limits."""

T = TypeVar("T")


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
