"""Calls of remote models, and how strategies chose them. Local calls are inside ``TaskProposed`` and
``TaskAttempted``."""

from typing import Literal

from pydantic import Field

from agent0.events.base import Event
from agent0.events.values import Artifact, Capture, RouteAnswer, RouteOption, RouteStep, TokenCounts, Usage

Health = Literal["", "failing", "well", "miscounts"]


class ModelCalled(Event):
    """A remote model was called: which one, how long it took, how many tokens, what it cost, and how it ended."""

    task: str = "-"
    attempt: str = "-"
    provider: str
    model: str
    """As the server named what it served."""
    role: str
    finish: str
    """How its turn ended; ``error`` where there is none."""
    usage: Usage
    requested_model: str = ""
    """The model that was asked for."""
    quantization: str = ""
    fingerprint: str = ""
    """What the server says of its own version, empty where it says nothing."""
    capture: Capture = ""
    tokens: TokenCounts | None = None
    """None: the server did not count, and the call was charged in full."""
    cost: int | None = None
    """In nano-dollars; None: unknown."""
    prices: str = ""
    """Price table, its version and day."""
    call: str = ""
    """Id of its reservation in the budgets."""
    host: str = ""
    """Who computed it, behind an address that passes requests on."""
    retries: int = 0
    """Tries of the same request with the same model that came before; each is an event."""
    route: str = ""
    """Id that all tries of a request share, whichever model they ask."""
    reason: str = ""
    """Why this model was asked: the models before it in the chain, and how they failed; empty for the first."""
    segment: int = 0
    """How often another model was served in this run than before, under the name that was asked for."""
    former: str = ""
    """What was served before, where this call begins a new segment."""
    cache: Literal["", "hit", "miss"] = ""
    saved: int = 0
    """Nano-dollars that a cache hit would have cost."""
    error: str = ""
    health: Health = ""
    """``failing``: with this call it failed so often in a row that it is left alone; ``well``: it was, and answered;
    ``miscounts``: it counted tokens that cannot be, for the first time in this process."""
    prompt: Artifact | None = None
    output: Artifact | None = None
    compressed: int = 0
    """Characters that were left out of its prompt."""
    summaries: int = 0
    """Outputs of tools in its prompt for which a summary by another model stands; ``prompt`` has them as sent."""
    summarizer: str = ""
    """The model that was to write them, ``provider/model``; empty: no output was long enough."""
    summary_calls: int = 0
    """Calls of that model for this prompt, which cost nothing; the other summaries were kept from before."""
    batch: str = ""
    """The vendor's id of the batch that it was part of; empty: it was a call of its own."""


class BatchSubmitted(Event):
    """Requests were handed to a vendor's batch API: a process that goes on asks for the answers of this batch, and
    submits nothing again."""

    provider: str
    model: str
    role: str
    batch: str
    """The vendor's id."""
    call: str
    """Id of the one reservation of all its requests in the budgets."""
    amount: int | None
    """What is reserved, in nano-dollars; None: unknown."""
    requests: int
    location: str = ""
    """Address of its server, where that is not the vendor's own."""
    day: str = ""
    """The date (UTC) whose budget it is reserved in; empty: that of this event."""
    user: str = ""
    """The user whose budget it is reserved in; empty: whom the settings name."""


class BatchEnded(Event):
    """A batch was collected: its answers are kept, and it is charged what they cost."""

    batch: str
    call: str
    answered: int
    failed: int
    cost: int
    """In nano-dollars."""


class CallRouted(Event):
    """A strategy chose which models to ask and whose answer to give: what it knew, and each of its decisions."""

    task: str = "-"
    attempt: str = "-"
    route: str
    """Id that the calls of this question share, as in ``ModelCalled``."""
    role: str
    strategy: str
    rules: dict[str, float | None] = Field(default_factory=dict)
    """Numbers that it read; amounts in nano-dollars."""
    options: tuple[RouteOption, ...] = ()
    answers: tuple[RouteAnswer, ...] = ()
    steps: tuple[RouteStep, ...] = ()
    chosen: str = ""
    """The model whose answer was given."""
    draw: float = 0.0
    """The question's own number in [0, 1)."""
