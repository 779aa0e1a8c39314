"""Calls that cost money: reserved before, charged after, and never free because something went wrong."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from agent0.assembly.runtime.stamping import recorded
from agent0.errors import (
    AuthError,
    BudgetExhaustedError,
    DependencyError,
    NotSentError,
    OperationError,
    RefusedError,
    TransientError,
    UnknownPriceError,
)
from agent0.events.alarms import AlarmRaised
from agent0.events.models import ModelCalled
from agent0.events.values import TokenCounts, Turn, Usage
from agent0.infra.gateway.billed import TEMPLATE_BYTES, Billed, Books, Remote, Try, prompt_bytes
from agent0.infra.gateway.cache import AnswerCache
from agent0.infra.gateway.gateway import Gateway, Guards, RemoteLink
from agent0.infra.gateway.ledger import Account, Ledger
from agent0.infra.gateway.pins import OnChange, Pins
from agent0.infra.gateway.prices import Prices, vendor_of
from agent0.infra.gateway.rates import RateLimits
from agent0.infra.gateway.retries import Retries
from agent0.infra.log.event_log import Log
from agent0.ports.models import GenerateRequest, Generation, Sampling, ToolSpec
from agent0.routing.breaker import Breaker
from agent0.routing.health import model_alarms
from agent0.settings import RouterSettings
from tests.memory import MemoryArtifacts

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
CENT = 10_000_000
COUNTED = {"prompt_tokens": 1000, "completion_tokens": 200, "prompt_tokens_details": {"cached_tokens": 800}}
ASKED = GenerateRequest((Turn(role="user", content="2+2?"),), Sampling(max_tokens=500), group="r1", joint=4)
RUN = Account("run", "r1")


class Vendor:
    """A model that does what it is told."""

    name = "gpt-4o-2024-11-20"

    def __init__(
        self, counted: Mapping[str, Any] = COUNTED, error: BaseException | None = None, thought: str = ""
    ) -> None:
        self.counted, self.error, self.thought, self.asked = counted, error, thought, list[GenerateRequest]()
        self.hangs = asyncio.Event()

    async def generate(self, request: GenerateRequest) -> Generation:
        self.asked.append(request)
        if self.error:
            raise self.error
        if self.counted is NOTHING:
            self.hangs.set()
            await asyncio.Event().wait()
        usage = Usage(prompt_tokens=1000, completion_tokens=200, wall_s=1.5, first_s=0.5)
        written = {"thinking": self.thought} if self.thought else {"text": "4"}
        return Generation(**{"text": ""} | written, usage=usage, model=self.name, capture="text", counted=self.counted)

    async def close(self) -> None:
        """Nothing is open."""


NOTHING: Mapping[str, Any] = {"hangs": True}


def books(log: Log, pin: OnChange = "segment", **settings: Any) -> Books:
    ledger = Ledger(log, recorded, lambda: AT, 60)
    return Books(
        ledger, Prices(RouterSettings(**settings)), log, MemoryArtifacts(), recorded, lambda: AT, Pins(log, pin)
    )


async def at_once(_: float) -> None:
    """A pause that is none."""


def link(
    kept: Books,
    model: Any,
    cap: int | None = None,
    name: str = "gpt-4o",
    *,
    tries: int = 0,
    breaker: int = 5,
    breaker_s: float = 30,
    cache: AnswerCache | None = None,
) -> RemoteLink:
    remote = Remote("openai", name, "teacher", "someone", {"run": cap})
    guards = Guards(RateLimits(at_once), Breaker(breaker, breaker_s), Retries(tries, 60, at_once))
    return RemoteLink(Billed(model, remote, kept), kept, guards, cache)


def gateway(log: Log, vendor: Vendor, cap: int | None = None, model: str = "gpt-4o", **settings: Any) -> Gateway:
    return Gateway([link(books(log, **settings), vendor, cap, model)], vendor)


async def called(log: Log) -> list[ModelCalled]:
    await log.queue.join()
    return [r.event async for r in log.read("r1", ("ModelCalled",)) if isinstance(r.event, ModelCalled)]


async def spent(log: Log) -> int:
    await log.queue.join()
    balance = await Ledger(log, recorded, lambda: AT, 60).balance(RUN)
    assert balance.open == ()
    return balance.spent


def most(request: GenerateRequest = ASKED) -> int:
    """gpt-4o: 2.50 dollars a million tokens read, 10 written."""
    return prompt_bytes(request) * 2500 + request.sampling.max_tokens * 10_000


async def test_a_call_is_charged_by_what_the_vendor_counted(log: Log) -> None:
    vendor = Vendor()
    written = await gateway(log, vendor, 5 * CENT).generate(ASKED)
    assert written.text == "4" and vendor.asked[0].joint == 1
    assert await spent(log) == 35 * CENT // 100  # as in the table of prices
    [event] = await called(log)
    assert (event.cost, event.prices) == (35 * CENT // 100, "genai-prices 0.2.3, 2026-11-20")
    assert event.tokens == TokenCounts(read=1000, cache_read=800, written=200)
    assert (event.requested_model, event.model, event.role, event.usage.first_s) == (
        "gpt-4o",
        vendor.name,
        "teacher",
        0.5,
    )


async def test_what_does_not_fit_is_not_sent(log: Log) -> None:
    vendor = Vendor()
    with pytest.raises(BudgetExhaustedError):
        await gateway(log, vendor, most() - 1).generate(ASKED)
    assert vendor.asked == [] and await called(log) == []
    await gateway(log, vendor, most()).generate(ASKED)
    assert len(vendor.asked) == 1


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (NotSentError("It"), False),
        (AuthError("no key"), False),
        (RefusedError("no such model"), False),
        (OperationError("it changed the prompt"), True),
        (DependencyError("It", "fell silent"), True),
        (TransientError("broke off"), True),
        (RuntimeError("a mistake of ours"), True),
    ],
)
async def test_failures_are_charged_unless_nothing_was_sent(log: Log, error: Exception, full: bool) -> None:
    with pytest.raises(type(error)):
        await gateway(log, Vendor(error=error)).generate(ASKED)
    assert await spent(log) == (most() if full else 0)
    [event] = await called(log)
    assert (event.error, event.cost, event.finish) == (type(error).__name__, most() if full else 0, "error")


async def test_a_cancelled_call_is_charged_in_full(log: Log) -> None:
    vendor = Vendor(NOTHING)
    call = asyncio.create_task(gateway(log, vendor).generate(ASKED))
    await vendor.hangs.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await spent(log) == most()


@pytest.mark.parametrize(
    "counted",
    [
        {},
        {"prompt_tokens": -5, "completion_tokens": 1},
        {"prompt_tokens": 5},
        COUNTED | {"prompt_tokens": 7},
        COUNTED | {"completion_tokens": 501},
        COUNTED | {"completion_tokens": 0},
        COUNTED | {"prompt_tokens": 10**6},
        COUNTED | {"completion_tokens": 10**12},
    ],
)
async def test_counts_that_cannot_be_cost_the_whole_reservation_and_lose_no_answer(log: Log, counted: Any) -> None:
    assert (await gateway(log, Vendor(counted)).generate(ASKED)).text == "4"
    assert await spent(log) == most()
    [event] = await called(log)
    assert (event.tokens, event.cost, event.error) == (None, most(), "UsageError")
    [alarm] = model_alarms(event)
    assert isinstance(alarm, AlarmRaised) and alarm.alarm == "model-miscounts-openai-gpt-4o"


@pytest.mark.parametrize("more", [{"server_tool_use": {"web_search_requests": 200_000}}, {"output_tokens": 0}])
async def test_nothing_that_is_counted_costs_more_than_was_reserved(log: Log, more: Any) -> None:
    """Searches that nobody asked for have a price, too; a thought alone is written as an answer is."""
    vendor = Vendor({"input_tokens": 10, "output_tokens": 5} | more, thought="hm")
    remote = Remote("anthropic", "claude-sonnet-4-5", "judge", "someone", {}, usage=("anthropic", "default"))
    billed = Billed(vendor, remote, books(log))
    await billed.ask(ASKED, Try())
    assert await spent(log) == billed.most(ASKED)
    [event] = await called(log)
    assert (event.cost, event.error, event.health) == (billed.most(ASKED), "UsageError", "miscounts")


async def test_counts_that_cannot_be_raise_one_alarm_a_process(log: Log) -> None:
    vendor = gateway(log, Vendor(COUNTED | {"completion_tokens": 501}))
    for _ in range(3):
        await vendor.generate(ASKED)
    assert [event.health for event in await called(log)] == ["miscounts", "", ""]
    fair = gateway(log, Vendor(COUNTED | {"completion_tokens": 500, "prompt_tokens": prompt_bytes(ASKED)}))
    await fair.generate(ASKED)
    assert [(event.health, event.error) for event in await called(log)][3:] == [("", "")]


async def test_an_unknown_price_is_refused_under_a_cap_and_else_noted(log: Log) -> None:
    vendor = Vendor()
    with pytest.raises(UnknownPriceError, match="openai/gpt-99"):
        await gateway(log, vendor, CENT, "gpt-99").generate(ASKED)
    assert vendor.asked == []
    own = {"openai/gpt-99": {"input": 1, "output": 2}}
    await gateway(log, vendor, CENT, "gpt-99", prices=own).generate(ASKED)
    assert await spent(log) == 1000 * 1000 + 200 * 2000
    other = Ledger(log, recorded, lambda: AT, 60)
    await other.set_cap(RUN, None)
    await gateway(log, vendor, None, "gpt-99").generate(ASKED)
    assert [event.cost for event in await called(log)] == [1_400_000, None]


def test_everything_that_is_sent_counts() -> None:
    tool = ToolSpec("python", "Runs ünïcode.", {"type": "object"})
    more = GenerateRequest(ASKED.turns, ASKED.sampling, (tool,), prefill="four", schema={"type": "string"})
    assert prompt_bytes(ASKED) > TEMPLATE_BYTES + len("2+2?")
    assert prompt_bytes(more) > prompt_bytes(ASKED) + len("Runs ünïcode.".encode()) + len("four")


@pytest.mark.parametrize(
    ("url", "vendor"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://api.anthropic.com/v1", "anthropic"),
        ("https://models.example.org/v1", "models.example.org"),
        ("http://127.0.0.1:8000/v1", ""),
        ("http://localhost:8000", ""),
        ("http://192.168.1.7:8000", ""),
        ("http://gpu-box:8000", ""),
        ("http://[::1]:8000", ""),
        ("https://8.8.8.8/v1", "8.8.8.8"),
    ],
)
def test_who_sends_the_bill(url: str, vendor: str) -> None:
    assert vendor_of(url) == vendor
