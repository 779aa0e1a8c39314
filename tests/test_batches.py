"""Vendors' batch APIs: reserved and charged at their prices, kept in the cache, collected after a kill, never twice."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent0.errors import AuthError, BudgetExhaustedError, RefusedError
from agent0.events.base import Event
from agent0.events.models import BatchEnded, BatchSubmitted, ModelCalled
from agent0.events.values import Turn
from agent0.infra.gateway.batches import Batches, Collected, id_of
from agent0.infra.gateway.billed import Remote, prompt_bytes
from agent0.infra.gateway.cache import AnswerCache
from agent0.infra.gateway.gateway import Gateway
from agent0.infra.gateway.ledger import Account, Ledger
from agent0.infra.gateway.retries import Retries
from agent0.infra.log.event_log import Log
from agent0.infra.models.anthropic.batches import AnthropicBatches
from agent0.infra.models.openai.batches import OpenAIBatches
from agent0.ports.models import GenerateRequest, Sampling
from agent0.settings import ActorConfig
from tests.batch_server import BatchStandIn, serving
from tests.test_gateway import AT, RUN, Vendor, at_once, books, link, recorded, spent

VENDORS = ("anthropic", "openai")
MODELS = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-4o"}
COST = {"anthropic": 1000 * 1500 + 100 * 7500, "openai": 1000 * 1250 + 100 * 5000}
"""Of an answer of the stand-in, in nano-dollars: half of 3 and 15 dollars a million, and of 2.50 and 10."""
RATES = {"anthropic": (6000, 11_250), "openai": (1250, 5000)}
"""Dearest ones in a batch: Anthropic's above 200,000 tokens, into the cache for an hour."""
ASKED = [
    GenerateRequest((Turn(role="user", content=f"{n}+{n}?"),), Sampling(0.0, max_tokens=200), group="r1")
    for n in range(3)
]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchStandIn]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    with serving() as there:
        yield there


@pytest.fixture
def cache(tmp_path: Path) -> AnswerCache:
    return AnswerCache(tmp_path / "answers.sqlite", days=1, mib=1)


OPEN = list[Batches]()


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    """Whatever a test opened is closed."""
    yield
    while OPEN:
        await OPEN.pop().close()


def batches(log: Log, server: BatchStandIn, cache: AnswerCache, vendor: str, cap: int | None = None) -> Batches:
    actor = ActorConfig(provider=vendor, model=MODELS[vendor], base_url=server.url)
    api: Any = AnthropicBatches(actor) if vendor == "anthropic" else OpenAIBatches(actor)
    usage = ("anthropic", "default") if vendor == "anthropic" else ("openai", "chat")
    remote = Remote(vendor, MODELS[vendor], "judge", "someone", {"run": cap}, usage=usage)
    OPEN.append(Batches(api, Vendor(), remote, books(log), cache, Retries(2, 60, at_once)))
    return OPEN[-1]


async def stored(log: Log, kind: type[Event]) -> list[Any]:
    await log.queue.join()
    return [one.event async for one in log.read("r1", (kind.__name__,))]


def most(vendor: str) -> int:
    read, written = RATES[vendor]
    return sum(prompt_bytes(one) * read + 200 * written for one in ASKED)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_answers_are_kept_at_the_price_of_batches(
    log: Log, server: BatchStandIn, cache: AnswerCache, vendor: str
) -> None:
    found = batches(log, server, cache, vendor)
    assert await found.fetch([*ASKED, ASKED[0]], 0) == Collected(3, 0, 3 * COST[vendor])
    assert await spent(log) == 3 * COST[vendor]
    [submitted], [ended] = await stored(log, BatchSubmitted), await stored(log, BatchEnded)
    assert (submitted.batch, submitted.requests, submitted.amount) == (ended.batch, 3, most(vendor))
    called = await stored(log, ModelCalled)
    assert {(one.batch, one.cost, one.model[:6]) for one in called} == {(ended.batch, COST[vendor], MODELS[vendor][:6])}
    for place, request in enumerate(ASKED):
        kept = cache.get(vendor, MODELS[vendor], request, AT.timestamp())
        assert kept and (kept.answer.text, kept.cost) == (f"answer {place}", COST[vendor])
    assert await found.fetch(ASKED, 0) == Collected() and len(server.batches) == 1


async def test_whoever_asks_the_same_afterwards_pays_nothing(
    log: Log, server: BatchStandIn, cache: AnswerCache
) -> None:
    await batches(log, server, cache, "openai").fetch(ASKED, 0)
    vendor = Vendor()
    written = await Gateway([link(books(log), vendor, cache=cache)], vendor).generate(ASKED[1])
    assert written.text == "answer 1" and vendor.asked == []
    await log.queue.join()
    hit = (await stored(log, ModelCalled))[-1]
    assert (hit.cache, hit.cost, hit.saved) == ("hit", 0, COST["openai"])


async def left_behind(log: Log, server: BatchStandIn, cache: AnswerCache, vendor: str) -> None:
    """What a kill leaves: a batch at the vendor, and what the log has."""
    server.looks = 10**9
    waiting = asyncio.ensure_future(batches(log, server, cache, vendor).fetch(ASKED, 0))
    while not any(server.looked.values()):
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    server.looks = 1


@pytest.mark.parametrize("vendor", VENDORS)
async def test_its_money_is_held_while_it_is_waited_for_and_it_is_collected_after_a_kill(
    log: Log, server: BatchStandIn, cache: AnswerCache, vendor: str
) -> None:
    await left_behind(log, server, cache, vendor)
    balance = await Ledger(log, recorded, lambda: AT, 60).balance(RUN)
    assert (balance.reserved, balance.spent) == (most(vendor), 0)
    assert balance.open[0].expires >= AT.timestamp() + 24 * 3600
    again = batches(log, server, cache, vendor)
    assert await again.fetch(ASKED, 0) == Collected(3, 0, 3 * COST[vendor])
    assert len(server.batches) == 1 and await spent(log) == 3 * COST[vendor]
    assert len(await stored(log, BatchSubmitted)) == 1
    ledger = Ledger(log, recorded, lambda: AT, 60)  # as of the day on which it was reserved, whatever day it is
    for account in (Account("day", f"{AT:%Y-%m-%d}"), Account("user", "someone")):
        balance = await ledger.balance(account)
        assert (balance.spent, balance.open) == (3 * COST[vendor], ())


@pytest.mark.parametrize("vendor", VENDORS)
async def test_what_was_not_answered_costs_nothing_and_an_uncounted_answer_its_most(
    log: Log, server: BatchStandIn, cache: AnswerCache, vendor: str
) -> None:
    server.faults = {0: "errored", 1: "no usage", 2: "expired"}
    read, written = RATES[vendor]
    dearest = prompt_bytes(ASKED[1]) * read + 200 * written
    assert await batches(log, server, cache, vendor).fetch(ASKED, 0) == Collected(1, 2, dearest)
    assert await spent(log) == dearest
    told = sorted((one.error.split()[0], one.cost) for one in await stored(log, ModelCalled))
    assert told[0] == ("UsageError", dearest) and {cost for _, cost in told[1:]} == {0}
    server.faults = {}
    assert (await batches(log, server, cache, vendor).fetch(ASKED, 0)).answered == 2  # those two, again


async def test_an_uncounted_answer_that_is_not_asked_for_any_more_costs_its_share(
    log: Log, server: BatchStandIn, cache: AnswerCache
) -> None:
    await left_behind(log, server, cache, "openai")
    server.faults = dict.fromkeys(range(3), "no usage")
    share = -(-most("openai") // 3)
    found = await batches(log, server, cache, "openai").fetch(ASKED[:1], 0)
    own = prompt_bytes(ASKED[0]) * RATES["openai"][0] + 200 * RATES["openai"][1]
    assert found == Collected(3, 0, own + 2 * share) and await spent(log) == own + 2 * share


async def test_answers_that_nobody_asked_for_cost_nothing(log: Log, server: BatchStandIn, cache: AnswerCache) -> None:
    server.more = True
    assert await batches(log, server, cache, "anthropic").fetch(ASKED, 0) == Collected(3, 0, 3 * COST["anthropic"])
    assert await spent(log) == 3 * COST["anthropic"]


@pytest.mark.parametrize("asked", [1, 3])
async def test_a_batch_costs_no_more_than_was_reserved_for_it(
    log: Log, server: BatchStandIn, cache: AnswerCache, asked: int
) -> None:
    """Whatever its answers count, and though nobody knows any more what they answer."""
    await left_behind(log, server, cache, "anthropic")
    server.faults = dict.fromkeys(range(3), "searches")
    assert (await batches(log, server, cache, "anthropic").fetch(ASKED[:asked], 0)).cost == most("anthropic")
    assert await spent(log) == most("anthropic")
    assert sorted(call.health for call in await stored(log, ModelCalled)) == ["", "", "miscounts"]


async def test_a_batch_that_is_refused_as_a_whole_costs_nothing_and_is_over(
    log: Log, server: BatchStandIn, cache: AnswerCache
) -> None:
    server.failed = True
    with pytest.raises(RefusedError, match="not JSON"):
        await batches(log, server, cache, "openai").fetch(ASKED, 0)
    assert await spent(log) == 0
    [ended] = await stored(log, BatchEnded)
    assert (ended.answered, ended.failed, ended.cost) == (0, 3, 0)
    server.failed = False
    assert (await batches(log, server, cache, "openai").fetch(ASKED, 0)).answered == 3


async def test_nothing_is_handed_in_that_may_cost_more_than_is_left(
    log: Log, server: BatchStandIn, cache: AnswerCache
) -> None:
    with pytest.raises(BudgetExhaustedError):
        await batches(log, server, cache, "openai", most("openai") - 1).fetch(ASKED, 0)
    assert server.batches == server.files == {} and await spent(log) == 0
    assert (await batches(log, server, cache, "openai", most("openai")).fetch(ASKED, 0)).answered == 3


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_batch_that_is_refused_frees_its_money(
    log: Log, server: BatchStandIn, cache: AnswerCache, vendor: str
) -> None:
    server.refuse = 401
    with pytest.raises(AuthError):
        await batches(log, server, cache, vendor).fetch(ASKED, 0)
    assert await spent(log) == 0 and await stored(log, BatchSubmitted) == []


async def test_a_batch_whose_answer_was_lost_is_charged_in_full_and_not_handed_in_again_by_itself(
    log: Log, server: BatchStandIn, cache: AnswerCache
) -> None:
    server.refuse = 500
    with pytest.raises(Exception, match="failed with status 500"):
        await batches(log, server, cache, "openai").fetch(ASKED, 0)
    balance = await Ledger(log, recorded, lambda: AT, 60).balance(RUN)
    assert (balance.reserved, balance.spent) == (most("openai"), 0)  # until it expires, and then it is charged


def test_the_same_request_has_the_same_id_whatever_it_is_for() -> None:
    assert id_of(ASKED[0]) == id_of(replace(ASKED[0], task="t", group="r2")) != id_of(ASKED[1])
    samples = {id_of(replace(ASKED[0], sampling=Sampling(1.0, seed=n))) for n in range(2)}
    assert len(samples) == 2 and len(id_of(ASKED[0])) <= 64
