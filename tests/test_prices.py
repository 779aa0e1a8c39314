"""What calls cost: usages of both vendors against cents computed by hand, and nothing unknown is ever free."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from genai_prices.data_snapshot import get_snapshot

from agent0.errors import UsageError
from agent0.events.values import TokenCounts
from agent0.infra.gateway.prices import LOCAL, Prices, read_usage
from agent0.routing.budgets import most_cost
from agent0.settings import EnergyConfig, PriceSettings, RouterSettings

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
PRICES = Prices(RouterSettings())


def chat(read: int, written: int, **details: int) -> dict[str, Any]:
    """As OpenAI's chat completions count: what was cached is part of the prompt."""
    kinds = {"cached": "cached_tokens", "cache_write": "cache_write_tokens"}
    return {
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "prompt_tokens_details": {kinds[name]: n for name, n in details.items() if name in kinds},
            "completion_tokens_details": {"reasoning_tokens": details.get("reasoning", 0)},
        }
    }


def responses(read: int, written: int, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    """As OpenAI's responses do."""
    return {
        "usage": {
            "input_tokens": read,
            "output_tokens": written,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens_details": {"reasoning_tokens": reasoning},
        }
    }


def claude(
    read: int, written: int, cached: int = 0, cache_write: int = 0, hour: int = 0, searches: int = 0
) -> dict[str, Any]:
    """As Anthropic's messages do: what was cached is counted beside ``input_tokens``."""
    kept = {"ephemeral_5m_input_tokens": cache_write - hour, "ephemeral_1h_input_tokens": hour}
    return {
        "usage": {
            "input_tokens": read,
            "output_tokens": written,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": cache_write,
            "cache_creation": kept,
            "server_tool_use": {"web_search_requests": searches},
        }
    }


BATCH = True
USAGES: list[tuple[str, str, dict[str, Any], bool, str]] = [
    # Tokens times dollars a million are micro-dollars; 10,000 of them are a cent.
    # --- OpenAI, chat: gpt-4o 2.50 in, 1.25 cached, 10 out; in batches 1.25 and 5
    ("gpt-4o", "chat", chat(1000, 200), False, "0.45"),  # 1000x2.5 + 200x10 = 4500
    ("gpt-4o", "chat", chat(1000, 200, cached=800), False, "0.35"),  # 200x2.5 + 800x1.25 + 200x10 = 3500
    ("gpt-4o", "chat", chat(100_000, 0, cached=80_000), False, "15"),  # 20000x2.5 + 80000x1.25 = 150000
    ("gpt-4o", "chat", chat(1000, 200), BATCH, "0.225"),  # 1000x1.25 + 200x5 = 2250
    ("gpt-4o-mini", "chat", chat(1000, 1000), False, "0.075"),  # 1000x0.15 + 1000x0.6 = 750
    # gpt-5-mini 0.25 in, 0.025 cached, 2 out; in batches half
    ("gpt-5-mini", "chat", chat(4000, 1000, reasoning=900), False, "0.3"),  # 4000x0.25 + 1000x2 = 3000
    ("gpt-5-mini", "chat", chat(4000, 1000, cached=4000), False, "0.21"),  # 4000x0.025 + 1000x2 = 2100
    ("gpt-5-mini", "chat", chat(4000, 1000, cached=2000), BATCH, "0.1275"),  # 2000x0.125 + 2000x0.0125 + 1000x1 = 1275
    ("gpt-5-mini", "chat", chat(1, 1), False, "0.000225"),  # 0.25 + 2 = 2.25
    ("gpt-5-mini", "chat", chat(0, 0), False, "0"),
    # gpt-5.4 2.50 in, 0.25 cached, 15 out; of a prompt above 272,000 tokens 5, 0.50 and 22.50
    ("gpt-5.4", "chat", chat(272_000, 1000), False, "69.5"),  # 272000x2.5 + 1000x15 = 695000
    ("gpt-5.4", "chat", chat(272_001, 1000), False, "138.2505"),  # 272001x5 + 1000x22.5 = 1382505
    ("gpt-5.4", "chat", chat(300_000, 0, cached=290_000), False, "19.5"),  # 10000x5 + 290000x0.5 = 195000
    ("gpt-5.4", "chat", chat(300_000, 1000), BATCH, "76.125"),  # 300000x2.5 + 1000x11.25 = 761250
    # --- OpenAI, responses: o3 2 in, 0.50 cached, 8 out; gpt-5.6-sol 4 in, 0.40 cached, 5 into the cache, 20 out
    ("o3", "responses", responses(1000, 5000, reasoning=4800), False, "4.2"),  # 1000x2 + 5000x8 = 42000
    ("o3", "responses", responses(10_000, 100, cached=9000), False, "0.73"),  # 1000x2 + 9000x0.5 + 100x8 = 7300
    ("o3", "responses", responses(1000, 1000), BATCH, "0.5"),  # 1000x1 + 1000x4 = 5000
    ("gpt-5.6-sol", "responses", responses(1000, 100), False, "0.6"),  # 1000x4 + 100x20 = 6000
    ("gpt-5.6-sol", "chat", chat(3000, 0, cached=1000, cache_write=1000), False, "0.94"),  # 4000 + 400 + 5000 = 9400
    # --- Anthropic: sonnet 5.5 2 in, 0.10 cached, 2.50 into the cache, 4 for an hour, 10 out; in batches half
    ("claude-sonnet-5-5", "default", claude(1000, 200), False, "0.4"),  # 1000x2 + 200x10 = 4000
    ("claude-sonnet-5-5", "default", claude(20_000, 0, cached=80_000), False, "4.8"),  # 20000x2 + 80000x0.1 = 48000
    ("claude-sonnet-5-5", "default", claude(0, 0, cache_write=10_000), False, "2.5"),  # 10000x2.5 = 25000
    (
        "claude-sonnet-5-5",
        "default",
        claude(0, 0, cache_write=10_000, hour=4000),
        False,
        "3.1",
    ),  # 15000 + 16000 = 31000
    ("claude-sonnet-5-5", "default", claude(1000, 200, cached=1000), BATCH, "0.205"),  # 1000 + 50 + 1000 = 2050
    ("claude-sonnet-5-5", "default", claude(0, 0, searches=3), False, "3"),  # three at a cent
    ("claude-opus-5-5", "default", claude(500, 1500, cached=500), False, "3.21"),  # 500x4 + 500x0.2 + 1500x20 = 32100
    # haiku 5.5 0.10 in, 0.01 cached, 0.50 out; of a prompt above 100,000 tokens, cached ones counted, 0.50, 0.05, 2.50
    ("claude-haiku-5-5", "default", claude(100_000, 1000), False, "1.05"),  # 100000x0.1 + 1000x0.5 = 10500
    ("claude-haiku-5-5", "default", claude(20_001, 1000, cached=80_000), False, "1.65005"),  # 10000.5 + 4000 + 2500
    ("claude-haiku-5-5", "default", claude(20_000, 1000, cached=80_000), False, "0.33"),  # 2000 + 800 + 500 = 3300
    ("claude-haiku-5-5", "default", claude(200_000, 1000), BATCH, "5.125"),  # 200000x0.25 + 1000x1.25 = 51250
]


@pytest.mark.parametrize(("model", "flavor", "body", "batch", "cents"), USAGES)
def test_usages_against_cents_by_hand(model: str, flavor: str, body: Any, batch: bool, cents: str) -> None:
    provider = "anthropic" if model.startswith("claude") else "openai"
    price = PRICES.of(provider, model, read_usage(provider, body, flavor), AT, batch)
    assert price is not None
    assert Decimal(price.amount) / 10_000_000 == Decimal(cents)
    assert price.table == "genai-prices 0.2.3, 2026-11-20"


def test_both_conventions_are_one() -> None:
    ours = TokenCounts(read=100_000, cache_read=80_000, written=5)
    assert read_usage("openai", chat(100_000, 5, cached=80_000), "chat") == ours
    assert read_usage("anthropic", claude(20_000, 5, cached=80_000), "default") == ours


@pytest.mark.parametrize(
    ("provider", "flavor", "body", "told"),
    [
        ("openai", "chat", {}, "Missing"),
        ("openai", "chat", {"usage": None}, "usage"),
        ("openai", "chat", {"usage": {"prompt_tokens": 5}}, "completion_tokens"),
        ("openai", "chat", {"usage": {"prompt_tokens": "5", "completion_tokens": 1}}, "prompt_tokens"),
        ("openai", "chat", chat(-1, 5), "input_tokens"),
        ("openai", "chat", chat(5, -1), "output_tokens"),
        ("openai", "chat", chat(5, 5, cached=6), "6 tokens read from"),
        ("openai", "chat", chat(5, 5, reasoning=6), "6 tokens of reasoning"),
        ("openai", "responses", responses(5, 5, cached=6), "6 tokens"),
        ("openai", "chat", {"usage": {"prompt_tokens": 1.5, "completion_tokens": 1}}, "whole"),
        ("openai", "chat", {"usage": {"prompt_tokens": float("nan"), "completion_tokens": 1}}, "token"),
        ("openai", "chat", chat(10**12, 5), "more than 100,000,000,000"),
        ("openai", "nonsense", chat(1, 1), "api_flavor"),
        ("nobody", "chat", chat(1, 1), "nobody"),
        ("anthropic", "default", claude(5, 5, cached=-1), "input_tokens"),
        ("anthropic", "default", {"usage": {"output_tokens": 5}}, "input_tokens"),
        ("anthropic", "default", claude(5, 5, cache_write=1, hour=2), "cache_write"),
    ],
)
def test_counts_that_cannot_be_are_an_error(provider: str, flavor: str, body: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told) as refused:
        read_usage(provider, body, flavor)
    assert "charged" in refused.value.fix


def test_what_nobody_knows_has_no_price() -> None:
    tokens = TokenCounts(read=5, written=5)
    for provider, model in (("openai", "gpt-99"), ("nobody", "gpt-4o"), ("github-copilot", "gpt-4o-mini")):
        assert PRICES.of(provider, model, tokens, AT) is None
        assert PRICES.rates(provider, model, AT) is None
    with pytest.raises(UsageError):
        PRICES.of("openai", "gpt-4o", TokenCounts(read=-5), AT)


def test_prices_of_ones_own() -> None:
    own = PriceSettings(input=2, output=8, cache_read=0.5, batch=0.5)
    prices = Prices(RouterSettings(prices={"openai/mine": own, "openai/gpt-4o": PriceSettings(input=1, output=1)}))
    tokens = TokenCounts(read=1000, cache_read=600, cache_write=100, written=10)
    # 300x2 + 600x0.5 + 100x2 + 10x8 = 1180 micro-dollars
    found, half = (prices.of("openai", "mine", tokens, AT, batch) for batch in (False, True))
    assert found and half and (found.amount, half.amount, found.table) == (1_180_000, 590_000, "setting")
    cheap = prices.of("openai", "gpt-4o", TokenCounts(read=7), AT)
    assert cheap and cheap.amount == 7000
    rates = prices.rates("openai", "mine", AT)
    assert rates and (rates.read, rates.written) == (2000, 8000)


def test_there_are_thirty() -> None:
    assert len(USAGES) == 30


@pytest.mark.parametrize(("model", "flavor", "body", "batch", "cents"), USAGES)
def test_nothing_costs_more_than_was_reserved(model: str, flavor: str, body: Any, batch: bool, cents: str) -> None:
    provider = "anthropic" if model.startswith("claude") else "openai"
    tokens, rates = read_usage(provider, body, flavor), PRICES.rates(provider, model, AT)
    assert rates is not None
    most = most_cost(tokens.read, tokens.written, rates.read, rates.written, rates.fee)
    assert tokens.searches or most >= Decimal(cents) * 10_000_000


def test_no_model_of_the_table_costs_more_than_was_reserved() -> None:
    """Some vendors charge for each request, too."""
    tokens, fees = TokenCounts(read=900, cache_write=300, written=500), set[str]()
    for provider in get_snapshot().providers:
        for model in provider.models:
            rates, price = PRICES.rates(provider.id, model.id, AT), PRICES.of(provider.id, model.id, tokens, AT)
            if rates and price:
                most = most_cost(tokens.read, tokens.written, rates.read, rates.written, rates.fee)
                assert price.amount <= most, f"{provider.id}/{model.id}"
                fees |= {provider.id} if rates.fee else set()
    assert "perplexity" in fees


def test_prices_are_those_of_the_day() -> None:
    # batches of sonnet 5.5 are in the table from 2026-10-14 on
    tokens = TokenCounts(read=1_000_000)
    days = (datetime(2026, 10, 13, 23, 59, tzinfo=UTC), datetime(2026, 10, 14, tzinfo=UTC))
    found = [PRICES.of("anthropic", "claude-sonnet-5-5", tokens, day, True) for day in days]
    assert [(one.amount, one.table[-10:]) for one in found if one] == [
        (2_000_000_000, "2026-10-13"),
        (1_000_000_000, "2026-10-14"),
    ]
    assert days[1] - days[0] == timedelta(minutes=1)


def test_local_calls_cost_their_energy() -> None:
    prices = Prices(RouterSettings(), EnergyConfig(power_w=360, price_kwh=0.3))
    # 360 W for 10 s are 3600 J, a thousandth of a kilowatt-hour: 0.0003 dollars
    assert all((price := prices.local(name, 10)) and price.amount == 300_000 for name in LOCAL)
    assert PRICES.local("tiny", 10) and PRICES.local("tiny", 10).amount == 0  # type: ignore[union-attr]
    assert prices.local("openai", 10) is None
