"""Rate limits of a vendor, as the headers of its answers name them: calls wait here rather than be refused there."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from time import monotonic

from aiolimiter import AsyncLimiter

MINUTE_S = 60.0
LONGEST_S = 120.0
"""No header makes calls wait longer than this: a server that means it refuses them, and says when to come back."""

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
KINDS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "requests": (
        ("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
        (
            "anthropic-ratelimit-requests-limit",
            "anthropic-ratelimit-requests-remaining",
            "anthropic-ratelimit-requests-reset",
        ),
    ),
    "tokens": (
        ("x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
        (
            "anthropic-ratelimit-tokens-limit",
            "anthropic-ratelimit-tokens-remaining",
            "anthropic-ratelimit-tokens-reset",
        ),
    ),
}
"""What is limited -> names of headers: how much a minute, how much is left of it, and when it begins anew. Those of
OpenAI, and of whoever follows it, then those of Anthropic."""

Sleep = Callable[[float], Awaitable[None]]


class RateLimits:
    """What one model's vendor allows a minute; anything until it has said so."""

    def __init__(self, sleep: Sleep = asyncio.sleep, clock: Callable[[], float] = monotonic) -> None:
        self._sleep, self._clock = sleep, clock
        self._limiters: dict[str, AsyncLimiter] = {}
        self._closed_until = 0.0

    @property
    def per_minute(self) -> dict[str, float]:
        """Requests and tokens a minute, where the vendor has said."""
        return {kind: limiter.max_rate for kind, limiter in self._limiters.items()}

    async def wait(self, tokens: int) -> None:
        """Wait until a request of about ``tokens`` tokens may be sent."""
        if (left := self._closed_until - self._clock()) > 0:
            await self._sleep(left)
        for kind, amount in (("requests", 1.0), ("tokens", float(tokens))):
            if limiter := self._limiters.get(kind):
                await limiter.acquire(min(amount, limiter.max_rate))

    def learn(self, headers: Mapping[str, str], at: datetime) -> None:
        """Read the headers of an answer; what is no number is no limit."""
        for kind, names in KINDS.items():
            for limit, remaining, reset in names:
                self._resize(kind, _number(headers.get(limit)))
                if _number(headers.get(remaining)) == 0:
                    left = min(LONGEST_S, _span(headers.get(reset, ""), at))
                    self._closed_until = max(self._closed_until, self._clock() + left)

    def _resize(self, kind: str, limit: float | None) -> None:
        if limit and (kind not in self._limiters or self._limiters[kind].max_rate != limit):
            self._limiters[kind] = AsyncLimiter(limit, MINUTE_S)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _span(text: str, at: datetime) -> float:
    """Seconds until a reset: ``6m0s`` as OpenAI writes it, a moment (RFC 3339) as Anthropic does; else 0."""
    if parts := _SPAN.findall(text) if _SPAN.match(text) else []:
        return sum(float(count) * _SECONDS[unit] for count, unit in parts)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - at).total_seconds())
