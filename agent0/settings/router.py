"""Settings of the router: caps and prices of model calls, the cache, how calls are tried again, and pinning."""

from typing import Literal

from pydantic import Field

from agent0.settings.base import SERVER_ADDRESS, Frozen

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


class ServerSettings(Frozen):
    """Where models that stand in for others are asked, as in ``run.<role>``."""

    base_url: str = Field("", pattern=SERVER_ADDRESS, description="address of the server; empty: the provider's own")
    key_env: str = Field(
        "", pattern=r"^([A-Za-z_]\w*)?$", description="environment variable that holds the server's key"
    )


class CacheSettings(Frozen):
    """The cache of answers that cost money; exact requests only, the seed included."""

    roles: tuple[Literal["teacher", "student", "judge"], ...] = Field(
        ("teacher", "judge"), description="whose answers are kept and used again; none: the cache is off"
    )
    days: float = Field(30, gt=0, le=36_500, description="age up to which an answer is used")
    mib: float = Field(256, gt=0, le=1_000_000, description="size; what was used longest ago is dropped first")


class RetrySettings(Frozen):
    """How a call that costs money is tried again, and when its model is left alone."""

    tries: int = Field(2, ge=0, le=20, description="further tries where a failure may pass; each is charged")
    longest_s: float = Field(60, ge=0, le=3600, description="longest wait that a busy server may ask for")
    breaker: int = Field(5, ge=1, le=1000, description="failed calls in a row after which a model is left alone")
    breaker_s: float = Field(
        30, gt=0, le=3600, description="seconds that it is left alone at first; twice as long after a failed trial"
    )


class CompressionSettings(Frozen):
    """Shorter prompts for models that cost money: what tools printed. Off, and refused until its loss of accuracy was
    measured (`agent0 router compress` prints these settings)."""

    stages: tuple[Literal["structural", "extractive", "summary"], ...] = Field(
        (),
        description="structural: JSON without blanks, repeated outputs named, long ones cut; extractive: of long ones "
        "the lines that fit best to what was asked; summary: a summary of long ones, where `summarizer` writes one",
    )
    summarizer: str = Field(
        "", max_length=200, description="model that writes the summaries: provider/model, one that costs nothing"
    )
    longest: int = Field(1500, ge=100, le=1_000_000, description="characters of an output that are kept")
    most_loss: float = Field(0.02, ge=0, le=1, description="loss of accuracy from which it is refused")
    loss95: float | None = Field(
        None, ge=-1, le=1, description="loss of accuracy that was measured, upper end of its 95 % interval"
    )
    measured_summarizer: str = Field(
        "", max_length=200, description="whose summaries were measured; by others' prompts are not compressed"
    )
    version: str = Field("", max_length=300, description="which measurement says so")


class RouterSettings(Frozen):
    """Models that cost money: budgets and prices, cache, retries, pinning."""

    caps: CapSettings = CapSettings()
    prices: dict[str, PriceSettings] = Field(default_factory=dict, description="provider/model -> prices")
    user: str = Field("local", min_length=1, max_length=200, description="whose budget calls are charged to")
    expiry_s: float = Field(
        900, ge=1, le=86_400, description="seconds after which a call that nobody ended is charged in full"
    )
    cache: CacheSettings = CacheSettings()
    compression: CompressionSettings = CompressionSettings()
    retries: RetrySettings = RetrySettings()
    pin: Literal["segment", "refuse"] = Field(
        "segment",
        description="where a server serves another model than before in the same run; segment: it is recorded as a new "
        "segment; refuse: the run waits",
    )
    hold: int = Field(
        0,
        ge=0,
        le=100_000,
        description="tokens (of four bytes) of a streamed answer that are held back: until then another try or model "
        "may take over, later none may; 0: its first byte is passed on",
    )
    batch_s: float = Field(30, gt=0, le=3600, description="seconds between two looks at a vendor's batch")
    servers: dict[str, ServerSettings] = Field(
        default_factory=dict, description="provider, or provider/model -> where models that stand in are asked"
    )
