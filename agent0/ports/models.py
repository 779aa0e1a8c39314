"""Roles of models: who writes a turn, who scores a text, who embeds one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from agent0.settings import ActorConfig
from events.values import Artifact, Turn, Usage


@dataclass(frozen=True)
class ToolSpec:
    """What a model is told of a tool: name, description and a JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Sampling:
    """How to sample. ``temperature`` 0 is greedy. ``seed`` keys this request's own random stream, so that a result
    does not depend on which other requests shared its batch."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 256
    seed: int = 0


@dataclass(frozen=True)
class GenerateRequest:
    """One assistant turn to be written.

    ``adapter`` is the artifact of an adapter (a tar of its folder), None for the base.
    ``prefill`` is text that the turn must start with (forced-tool control); it carries no gradient.
    ``group`` is the run the request belongs to: providers that batch share fairly among groups.
    """

    turns: tuple[Turn, ...]
    sampling: Sampling = Sampling()
    tools: tuple[ToolSpec, ...] = ()
    adapter: Artifact | None = None
    prefill: str = ""
    group: str = ""


@dataclass(frozen=True)
class Generation:
    """One assistant turn as written. ``text`` includes the prefill.

    ``prompt_ids`` is the whole context as the model saw it; ``token_ids`` and ``logprobs`` (natural log, at the
    sampling temperature) are what was sampled, one each. ``ends`` says where the text of each ends in ``text``, in
    characters. Providers that lack one of these leave it empty.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    finish: Literal["stop", "length"] = "stop"
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    ends: tuple[int, ...] = ()


class Model(Protocol):
    """A language model.

    Raises:
        DependencyError: server or weights are away (the reaction waits).
        TransientError: worth another try.
    """

    name: str

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one assistant turn; concurrent calls are gathered into one batch where the provider can."""
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...


@dataclass(frozen=True)
class Likely:
    """How likely a text is: the sum of the log-probabilities (natural) of its tokens, and its size."""

    logprob: float
    tokens: int
    characters: int


@runtime_checkable
class Likelihood(Protocol):
    """What a model may do besides: say how likely texts are that it did not write. Ollama's cannot."""

    async def likelihood(
        self, turns: Sequence[Turn], continuations: Sequence[str], adapter: Artifact | None = None
    ) -> Sequence[Likely]:
        """How likely each continuation is as the beginning of the assistant's next turn after ``turns``; the end of the
        turn does not count.

        Raises:
            OperationError: a continuation is empty, or does not fit into the model's context.
        """
        ...


class Shelving(Protocol):
    """What an embedder holds for ``agent0.tasks.novelty_archive``, by run: a cache, empty at first."""

    def of(self, run: str) -> Any:
        """Whatever is kept for ``run``."""
        ...


class Embedder(Protocol):
    """Texts to unit vectors. ``version`` names model and digest."""

    version: str

    @property
    def shelves(self) -> Shelving:
        """What ``agent0.tasks.novelty_archive`` keeps with it."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text, L2-normalised."""
        ...

    async def search(
        self, archive: str, size: int, fresh: Sequence[Sequence[float]], queries: Sequence[Sequence[float]]
    ) -> list[float] | None:
        """Add ``fresh`` to the vectors kept under the name ``archive``, then say the highest cosine similarity of each
        query to all of these (0.0 where there are none). None, and nothing is added, where not just ``size`` of them
        are kept, which a process that died has lost; ``size`` 0 begins anew."""
        ...


class Models(Protocol):
    """Opens the model that plays a role; the same configuration gives the same open model."""

    def open(self, actor: ActorConfig) -> Model:
        """The model of ``actor``, its weights loaded at the first call.

        Raises:
            ConfigError: no such provider.
        """
        ...


class Embedders(Protocol):
    """Opens an embedder by name."""

    def open(self, name: str) -> Embedder:
        """``minilm`` (sentence-transformers) or ``ngram`` (hashed character n-grams, no model).

        Raises:
            ConfigError: no such embedder.
        """
        ...
