"""Settings of the router: caps on what models may cost, prices, and what local calls cost."""

from pydantic import Field

from agent0.settings.base import Frozen

MOST_USD = 1_000_000_000


class CapSettings(Frozen):
    """Caps of budgets in US dollars; none by default. A run waits where a call may cost more than is left."""

    run: float | None = Field(None, ge=0, le=MOST_USD, description="of each run")
    day: float | None = Field(None, ge=0, le=MOST_USD, description="of each day (UTC), all runs together")
    provider: float | None = Field(None, ge=0, le=MOST_USD, description="of each provider, for good")
    user: float | None = Field(None, ge=0, le=MOST_USD, description="of each user, for good")


class PriceSettings(Frozen):
    """Prices of a model in US dollars a million tokens, in place of the price table's. What is not given costs what
    ``input`` or ``output`` does."""

    input: float = Field(ge=0, le=MOST_USD, description="tokens read")
    output: float = Field(ge=0, le=MOST_USD, description="tokens written, reasoning included")
    cache_read: float | None = Field(None, ge=0, le=MOST_USD, description="tokens read from the vendor's cache")
    cache_write: float | None = Field(None, ge=0, le=MOST_USD, description="tokens written into it")
    batch: float = Field(1, ge=0, le=1, description="share of these prices that a batched call costs")


class RouterSettings(Frozen):
    """Budgets and prices of model calls: caps, own prices, energy, expiry."""

    caps: CapSettings = CapSettings()
    prices: dict[str, PriceSettings] = Field(default_factory=dict, description="provider/model -> prices")
    user: str = Field("local", min_length=1, max_length=200, description="whose budget calls are charged to")
    expiry_s: float = Field(
        900, ge=1, le=86_400, description="seconds after which a call that nobody ended is charged in full"
    )
    kwh_usd: float = Field(0, ge=0, le=1000, description="price of a kilowatt-hour; 0: local calls cost nothing")
    watts: float = Field(0, ge=0, le=1_000_000, description="power that a local call draws")
