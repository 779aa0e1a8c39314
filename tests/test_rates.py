"""Rate limits as vendors' headers name them, when a model is left alone, and what a server says of itself."""

from datetime import UTC, datetime

import pytest

from agent0.infra.gateway.rates import LONGEST_S as LONGEST_WAIT_S
from agent0.infra.gateway.rates import RateLimits
from agent0.infra.models.calls.streams import rate_limits
from agent0.infra.models.openai.dialects import Way
from agent0.infra.models.openai.replies import Reading
from agent0.ports.models import Served
from agent0.routing.breaker import LONGEST_S, Breaker

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
ANTHROPIC = "anthropic-ratelimit-requests"
OPENAI = "x-ratelimit-{}-tokens"


class Paused:
    """A clock that goes on by the pauses that are made."""

    def __init__(self) -> None:
        self.now = 100.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    def limits(self) -> RateLimits:
        return RateLimits(self.sleep, lambda: self.now)


def test_limits_are_those_of_the_last_answer() -> None:
    limits = Paused().limits()
    limits.learn({f"{ANTHROPIC}-limit": "50", OPENAI.format("limit"): "90000", "x-other": "1"}, AT)
    assert limits.per_minute == {"requests": 50, "tokens": 90_000}
    limits.learn({f"{ANTHROPIC}-limit": "1000"}, AT)
    assert limits.per_minute == {"requests": 1000, "tokens": 90_000}


@pytest.mark.parametrize("value", ["", "many", "-3", "inf", "nan", "0"])
def test_what_is_no_number_is_no_limit(value: str) -> None:
    limits = Paused().limits()
    limits.learn({f"{ANTHROPIC}-limit": value}, AT)
    assert limits.per_minute == {}


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [("6m0s", LONGEST_WAIT_S), ("1m0.5s", 60.5), ("12ms", 0.012), ("2026-11-20T12:00:30Z", 30), ("soon", 0), ("", 0)],
)
async def test_a_used_up_limit_is_waited_for(reset: str, seconds: float) -> None:
    paused = Paused()
    limits = paused.limits()
    limits.learn({OPENAI.format("remaining"): "0", OPENAI.format("reset"): reset}, AT)
    await limits.wait(10)
    assert paused.now == pytest.approx(100 + seconds)
    await limits.wait(10)  # once
    assert paused.now == pytest.approx(100 + seconds)


async def test_a_request_larger_than_the_limit_is_not_held_for_ever() -> None:
    limits = Paused().limits()
    limits.learn({OPENAI.format("limit"): "100"}, AT)
    await limits.wait(1_000_000)


def test_only_headers_about_rates_are_read() -> None:
    headers = {"X-RateLimit-Limit-Requests": "5", "Authorization": "Bearer x", "Set-Cookie": "y"}
    assert rate_limits(headers) == {"x-ratelimit-limit-requests": "5"}


def test_a_breaker_opens_closes_and_lets_one_call_try() -> None:
    breaker = Breaker(failures=3, first_s=10)
    for now in (0, 1):
        breaker.fail(now)
        assert breaker.wait_s(now) == 0
    breaker.fail(2)
    assert breaker.wait_s(2) == 10 and breaker.wait_s(7) == 5
    assert breaker.wait_s(12) == 0  # the trial
    assert breaker.wait_s(12) > 0  # others wait for it
    breaker.fail(13)
    assert breaker.wait_s(13) == 20
    breaker.succeed()
    assert breaker.wait_s(13) == 0
    breaker.fail(14)
    assert breaker.wait_s(14) == 0


def test_a_breaker_is_never_open_for_longer_than_that() -> None:
    breaker = Breaker(failures=1, first_s=10)
    for _ in range(2000):
        breaker.fail(0)
    assert breaker.wait_s(0) == LONGEST_S


def test_what_a_server_says_of_itself_is_read() -> None:
    reading = Reading(Way("chat", "text"))
    reading.limits = {"x-ratelimit-limit-requests": "5"}
    part = {"model": "gpt-4o-2024-11-20", "system_fingerprint": "fp_1", "provider": "Fireworks"}
    reading.add(part | {"choices": [{"index": 0, "delta": {"content": "4"}}]})
    reading.add({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    [reply] = reading.replies()
    assert reply.served == Served(
        "gpt-4o-2024-11-20", host="Fireworks", fingerprint="fp_1", limits={"x-ratelimit-limit-requests": "5"}
    )
