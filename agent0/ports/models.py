"""Roles of models: write a turn, score a text, embed a text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from agent0.errors import clean_text
from agent0.events.values import Artifact, Capture, Turn, Usage
from agent0.settings import ActorConfig


@dataclass(frozen=True)
class ToolSpec:
    """A tool as it is described to a model: name, description and a JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters of one request. ``temperature`` 0 is greedy.

    ``seed`` keys this request's own random stream, so that a result does not depend on which other requests shared its
    batch. ``bias``: (text of a token, what is added to its logit) pairs; log-probabilities are those of the
    distribution so changed. Providers whose models run elsewhere ignore it. ``stop``: texts behind which nothing more
    is needed; a provider may end the turn there, with or without the text, or ignore them.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 256
    seed: int = 0
    bias: tuple[tuple[str, float], ...] = ()
    stop: tuple[str, ...] = ()


LONGEST_NAME = 500
"""Characters of a name that a server gives to anything."""

Listen = Callable[[str], None]
"""Takes all of a turn's text that is written so far, whenever there is more."""


@dataclass(frozen=True)
class GenerateRequest:
    """A request to write one assistant turn.

    ``adapter`` is the artifact of an adapter (a tar of its folder), None for the base. ``prefill`` is text that the
    turn must start with (forced-tool control); it carries no gradient. ``group`` is the run the request belongs to:
    providers that batch share fairly among groups. ``joint``: so many turns of its prompt may be drawn in one call, and
    the generation then says with which seed; 1: with its own. ``schema`` is a JSON schema that the whole turn is to
    meet; providers whose server cannot hold a model to one ignore it. ``task`` and ``attempt`` are what it is for, as
    subject tokens. ``listen`` hears the turn while it is written: models with ``streams`` call it, others only give
    whole turns. ``margins``: those of its tokens are wanted, where the model can tell them. ``turn``: turns that
    the model has written of its conversation; providers that queue answer later turns first.
    """

    turns: tuple[Turn, ...]
    sampling: Sampling = Sampling()
    tools: tuple[ToolSpec, ...] = ()
    adapter: Artifact | None = None
    prefill: str = ""
    group: str = ""
    schema: dict[str, object] | None = None
    joint: int = 1
    task: str = ""
    attempt: str = ""
    listen: Listen | None = field(default=None, compare=False, repr=False)
    margins: bool = False
    turn: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Served:
    """What a server says of itself with an answer; empty where it says nothing.

    ``model`` and ``quantization`` it serves, ``host``: who computed it behind an address that passes requests on,
    ``fingerprint`` of its version, ``limits``: the headers of its answer that name rate limits.
    """

    model: str = ""
    quantization: str = ""
    host: str = ""
    fingerprint: str = ""
    limits: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Clean and shorten what the server wrote."""
        for name in ("model", "quantization", "host", "fingerprint"):
            object.__setattr__(self, name, clean_text(getattr(self, name)[:LONGEST_NAME]))
        limits = {clean_text(name): clean_text(value[:LONGEST_NAME]) for name, value in self.limits.items()}
        object.__setattr__(self, "limits", limits)


@dataclass(frozen=True)
class Generation:
    """One assistant turn as generated. ``text`` includes the prefill.

    ``prompt_ids`` is the whole context as the model saw it; ``token_ids`` and ``logprobs`` (natural log, at the
    sampling temperature) are the sampled tokens, one each. ``ends`` has the character position in ``text`` at which
    each token's text ends. Providers that lack one of these leave it empty. ``capture`` says how much a server gave.
    ``untrainable`` is the reason why nothing may be trained on this turn, known tokens or not; empty where it may.
    ``seed`` is what it was drawn with where that is not the request's, None where it is. ``counted`` is a server's own
    count of tokens as it gave it, from which a price follows, and ``served`` what it says of itself. ``author`` is the
    model that wrote it, where another was meant. ``margins`` are, for each token, the probability of the likeliest one
    less that of the second, where they were wanted. ``thinking`` is a thought that the server gave apart from the text.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    finish: Literal["stop", "length"] = "stop"
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    ends: tuple[int, ...] = ()
    capture: Capture = ""
    untrainable: str = ""
    seed: int | None = None
    counted: Mapping[str, object] = field(default_factory=dict)
    served: Served = Served()
    author: str = ""
    margins: tuple[float, ...] = ()
    thinking: str = ""

    def __post_init__(self) -> None:
        """Clean the text: what a model writes may hold half a character, which neither a log nor a file can."""
        text = clean_text(self.text)
        if len(text) != len(self.text):
            object.__setattr__(self, "ends", ())  # halves were joined: places moved
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "thinking", clean_text(self.thinking))


class Model(Protocol):
    """A language model that writes assistant turns.

    Raises:
        DependencyError: server or weights are unavailable (the reaction waits).
        TransientError: another try may succeed.
    """

    name: str

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one assistant turn; concurrent calls are gathered into one batch where the provider can."""
        ...

    async def close(self) -> None:
        """Release every resource of the model."""
        ...


@runtime_checkable
class Resting(Protocol):
    """A model whose memory can be had for something else, as for training."""

    async def rest(self) -> None:
        """Give the memory back; the next call takes it again. What is not there or cannot be reached holds none."""
        ...


@dataclass(frozen=True)
class Likely:
    """The likelihood of a text: summed log-probability (natural) of its tokens, and its length in tokens
    and characters."""

    logprob: float
    tokens: int
    characters: int


@runtime_checkable
class Likelihood(Protocol):
    """A model that can also score texts it did not write. Ollama's cannot."""

    async def likelihood(
        self, turns: Sequence[Turn], continuations: Sequence[str], adapter: Artifact | None = None
    ) -> Sequence[Likely]:
        """Score each continuation as the beginning of the assistant's next turn after ``turns``; the end of the turn is
        left out.

        Raises:
            OperationError: a continuation is empty, or does not fit into the model's context.
        """
        ...


class ArchiveCache(Protocol):
    """The per-run cache that an embedder keeps for ``agent0.tasks.novelty_archive``; empty at first."""

    def of(self, run: str) -> Any:
        """The cache entry of ``run``."""
        ...


class Embedder(Protocol):
    """A text embedder: texts to unit vectors. ``version`` names model and digest."""

    version: str

    @property
    def archives(self) -> ArchiveCache:
        """The cache that ``agent0.tasks.novelty_archive`` keeps with this embedder."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed ``texts``; returns one L2-normalised vector per text."""
        ...

    async def search(
        self, archive: str, size: int, fresh: Sequence[Sequence[float]], queries: Sequence[Sequence[float]]
    ) -> list[float] | None:
        """Add ``fresh`` to the vectors stored as ``archive``, then return each query's highest cosine similarity to all
        of them.

        0.0 where nothing is stored. Returns None, and adds nothing, unless exactly ``size`` vectors are stored: a
        process that died lost them. ``size`` 0 starts anew.
        """
        ...


class Models(Protocol):
    """Opens the model that plays a role; the same configuration gives the same open model."""

    def open(self, actor: ActorConfig) -> Model:
        """Return the model of ``actor``; its weights load at the first call.

        Raises:
            ConfigError: no such provider.
        """
        ...


class Embedders(Protocol):
    """Opens a text embedder by the name that the settings give it."""

    def open(self, name: str) -> Embedder:
        """Return the embedder ``minilm`` (sentence-transformers) or ``ngram`` (hashed character n-grams, no model).

        Raises:
            ConfigError: no such embedder.
        """
        ...
