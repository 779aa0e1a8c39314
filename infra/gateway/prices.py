"""What a model call costs, by a dated table that comes with a package: nothing is asked of anybody.

A price that nobody knows is None, never 0. A call that is made here costs its electricity, or nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib.metadata import version
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from agent0.errors import UsageError
from agent0.events.budgets import DOLLAR
from agent0.events.values import TokenCounts
from agent0.infra.models.calls.counts import MOST
from agent0.infra.models.ollama import is_cloud
from agent0.routing.budgets import nano
from agent0.settings import EnergyConfig, PriceSettings, RouterSettings

PACKAGE = "genai-prices"
SETTING, ENERGY = "setting", "energy"
LOCAL = frozenset({"llamacpp", "ollama", "sampler", "scripted", "tiny", "transformers"})
"""Providers whose models run on a machine of the user's."""

_MILLION = 1_000_000
_READ = ("input_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_5m_mtok", "cache_write_1h_mtok")
_WRITTEN = ("output_mtok", "output_reasoning_mtok")
_JOULES = 3_600_000
"""Of a kilowatt-hour."""


@dataclass(frozen=True)
class Price:
    """What a call costs in nano-dollars, and by what: ``table`` names the price table, its version and the day (UTC) of
    the prices."""

    amount: int
    table: str


@dataclass(frozen=True)
class TokenRates:
    """Nano-dollars of a token read and of one written, each at the dearest rate that may apply: of the highest tier and
    of the longest stay in a cache; ``fee``: of a request, whatever it reads or writes."""

    read: Decimal
    written: Decimal
    fee: Decimal = Decimal(0)


class Prices:
    """The prices of all models, those of the settings first."""

    def __init__(self, settings: RouterSettings, energy: EnergyConfig | None = None) -> None:
        """``energy``: what a call that is made here draws, and what that costs; None: nothing."""
        self._own, watts, price = settings.prices, 0.0, 0.0
        if energy:
            watts, price = energy.power_w or 0.0, energy.price_kwh or 0.0
        self._second = Decimal(str(watts)) * Decimal(str(price)) / _JOULES

    def local(self, provider: str, wall_s: float, model: str = "") -> Price | None:
        """What a call of ``wall_s`` seconds costs where ``model`` of ``provider`` runs here: watts x seconds x price of
        a kWh.

        None where it runs elsewhere, as models of Ollama's cloud do.
        """
        if provider not in LOCAL or (provider == "ollama" and is_cloud(model)):
            return None
        return Price(nano(self._second * Decimal(str(wall_s)) * DOLLAR), ENERGY)

    def of(self, provider: str, model: str, tokens: TokenCounts, at: datetime, batch: bool = False) -> Price | None:
        """What a call to ``model`` of ``provider`` costs whose answer came at ``at``; None where nobody knows.

        Raises:
            UsageError: the counts contradict each other.
        """
        _check(tokens)
        if setting := self._own.get(f"{provider}/{model}"):
            return Price(nano(_by_setting(setting, tokens) * (Decimal(str(setting.batch)) if batch else 1)), SETTING)
        priced = _priced(provider, model, _usage(tokens), at, batch)
        if priced is None:
            return None
        return Price(nano(priced.total_price * DOLLAR), f"{_version()}, {at.astimezone(UTC):%Y-%m-%d}")

    def rates(self, provider: str, model: str, at: datetime, batch: bool = False) -> TokenRates | None:
        """The dearest rates of ``model`` at ``at``, of a batched call or of one of its own, priority aside; None where
        nobody knows them."""
        if setting := self._own.get(f"{provider}/{model}"):
            read = max(setting.input, setting.cache_read or 0, setting.cache_write or 0)
            share = Decimal(str(setting.batch)) if batch else Decimal(1)
            return TokenRates(_nano_a_token(read) * share, _nano_a_token(setting.output) * share)
        return _rates(provider, model, at.replace(second=0, microsecond=0), batch)


@lru_cache(maxsize=256)
def _rates(provider: str, model: str, minute: datetime, batch: bool) -> TokenRates | None:
    """By the table, whose prices change on whole minutes at most; asked for before every call."""
    priced = _priced(provider, model, _usage(TokenCounts()), minute, batch)
    if priced is None:
        return None
    prices = vars(priced.model_price)
    return TokenRates(_dearest(prices, _READ), _dearest(prices, _WRITTEN), priced.total_price * DOLLAR)


def read_usage(provider: str, body: Mapping[str, object], flavor: str) -> TokenCounts:
    """The tokens of a call by kind, out of the vendor's own answer.

    Args:
        provider: as the price table names it, ``openai`` or ``anthropic`` for instance.
        body: the answer as JSON.
        flavor: which of the vendor's formats it has: ``chat`` or ``responses``, ``default`` for Anthropic's.

    Raises:
        UsageError: no usage, or numbers that cannot be.
    """
    import genai_prices

    try:
        usage = genai_prices.extract_usage({**body, "model": None}, provider_id=provider, api_flavor=flavor).usage
    except (ValueError, LookupError) as error:
        raise _unusable(provider, str(error)) from error
    counts = {name: usage.reported_value(key) for name, key in _KEYS.items()}
    if any(not -MOST <= value <= MOST or value != int(value) for value in counts.values()):
        raise _unusable(provider, f"A count is no whole number, or more than {MOST:,}.")
    tokens = TokenCounts(**{name: int(value) for name, value in counts.items()})
    _check(tokens, provider)
    return tokens


def vendor_of(base_url: str) -> str:
    """Who sends the bill for calls of ``base_url``: a provider of the price table, else the host's name; empty where it
    is on this machine or in a private network."""
    host = urlsplit(base_url).hostname or ""
    if _is_near(host):
        return ""
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider(None, None, base_url).id
    except LookupError:
        return host


def _is_near(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".localhost"))


_KEYS = {
    "read": "input_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "cache_write_1h": "cache_write_1h_tokens",
    "written": "output_tokens",
    "reasoning": "output_reasoning_tokens",
    "searches": "web_searches",
}


def _usage(tokens: TokenCounts) -> Any:
    import genai_prices

    return genai_prices.Usage(**{key: getattr(tokens, name) for name, key in _KEYS.items()})


def _priced(provider: str, model: str, usage: Any, at: datetime, batch: bool) -> Any:
    """What the table says, None where it does not know the model, or no price of what it reads or writes."""
    import genai_prices

    context = {"processing": "batch"} if batch else None
    try:
        priced = genai_prices.calc_price(
            usage, model, provider_id=provider, genai_request_timestamp=at, price_context=context
        )
    except LookupError:
        return None
    except ValueError as error:
        raise _unusable(provider, str(error)) from error
    prices = vars(priced.model_price)
    return priced if prices.get("input_mtok") is not None and prices.get("output_mtok") is not None else None


def _by_setting(setting: PriceSettings, tokens: TokenCounts) -> Decimal:
    """Nano-dollars by prices of the settings."""
    plain = tokens.read - tokens.cache_read - tokens.cache_write
    priced = (
        (plain, setting.input),
        (tokens.cache_read, setting.input if setting.cache_read is None else setting.cache_read),
        (tokens.cache_write, setting.input if setting.cache_write is None else setting.cache_write),
        (tokens.written, setting.output),
    )
    return sum((count * _nano_a_token(price) for count, price in priced), Decimal(0))


def _nano_a_token(price: float | Decimal) -> Decimal:
    """Of US dollars a million tokens."""
    return Decimal(str(price)) * DOLLAR / _MILLION


def _dearest(table: Mapping[str, object], kinds: tuple[str, ...]) -> Decimal:
    """Nano-dollars of a token: the highest of the prices of ``kinds``, each with all its tiers."""
    prices = [table[kind] for kind in kinds if table.get(kind) is not None]
    flat = [tier for price in prices for tier in _tiers(price)]
    return _nano_a_token(max(flat))


def _tiers(price: Any) -> list[Decimal]:
    return [price.base, *(tier.price for tier in price.tiers)] if hasattr(price, "tiers") else [price]


@cache
def _version() -> str:
    return f"{PACKAGE} {version(PACKAGE)}"


def _check(tokens: TokenCounts, provider: str = "") -> None:
    counts = tokens.model_dump()
    if wrong := [name for name, count in counts.items() if count < 0]:
        raise _unusable(provider, f"Below zero: {', '.join(wrong)}.")
    parts = (
        (tokens.cache_read + tokens.cache_write, tokens.read, "read from or written into a cache"),
        (tokens.cache_write_1h, tokens.cache_write, "written into a cache for an hour"),
        (tokens.reasoning, tokens.written, "of reasoning"),
    )
    for part, whole, what in parts:
        if part > whole:
            raise _unusable(provider, f"{part} tokens {what}, of {whole} in all.")


def _unusable(provider: str, why: str) -> UsageError:
    named = f" of {provider}" if provider else ""
    fix = "The call is charged with all that was reserved for it. Use a server that reports what it counted."
    return UsageError(f"The token counts{named} cannot be used.", why, fix)
