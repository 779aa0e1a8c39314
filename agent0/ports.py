"""What thought needs of the world: roles that ``infra`` plays. A handler names the ports it wants as parameters."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from agent0.settings import ActorConfig, CurriculumConfig, PolicyConfig
from events.base import Recorded
from events.benchmarks import BenchmarksIndexed
from events.values import Artifact, Task, ToolState, Trajectory, Turn, Usage


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


@dataclass(frozen=True)
class Sample:
    """One trajectory with what the objective needs: ``advantage`` (any real), ``weight`` (>= 0), and the trajectory
    that this one is preferred ``over`` (preference pairs only)."""

    trajectory: Trajectory
    advantage: float = 0.0
    clip_high: float = 0.2
    weight: float = 1.0
    over: Trajectory | None = None


@dataclass(frozen=True)
class Lesson:
    """A conversation that no policy wrote as it stands, so that it has no token ids: the trainer makes them. Only what
    the assistant says is learned. ``event`` is the fact it was made from.

    ``learned`` are places (start, end) in the last turn: of it, only these count, and its end where ``closed``.
    ``origin``: what of these is whose, as ``CheckpointTrained.learned`` has it.
    """

    turns: tuple[Turn, ...]
    weight: float = 1.0
    event: str = ""
    learned: tuple[tuple[int, int], ...] | None = None
    closed: bool = True
    origin: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainJob:
    """Train one adapter: the objective that ``settings`` names on ``samples``, plus likelihood on ``replay`` (verified
    successes) and ``lessons``."""

    samples: tuple[Sample, ...]
    replay: tuple[Sample, ...]
    parent: Artifact | None
    seed: int
    settings: Mapping[str, Any]
    metadata: Mapping[str, str] = field(default_factory=dict)
    lessons: tuple[Lesson, ...] = ()


@dataclass(frozen=True)
class Trained:
    """A new adapter and the numbers of its making (loss, steps, tokens, clip share, seconds…)."""

    adapter: Artifact
    metrics: dict[str, float]
    environment: dict[str, str] = field(default_factory=dict)
    """Threads, torch build, CPU capability: what bit-equality depends on."""


class Trainer(Protocol):
    """Turns weighted trajectories into an adapter, in a process of its own."""

    async def train(self, job: TrainJob) -> Trained:
        """Same job, same adapter (on one machine kind)."""
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


class Contamination(Protocol):
    """Items of benchmarks that no generated task may repeat; none where no folder with rows is named."""

    async def facts(self, plan: CurriculumConfig, embedder: Embedder) -> BenchmarksIndexed | None:
        """What tasks are compared with, None where that is nothing. The first call embeds all items (minutes, once)."""
        ...

    async def overlaps(
        self, tasks: Sequence[Task], vectors: Sequence[Sequence[float]], plan: CurriculumConfig, embedder: Embedder
    ) -> list[str]:
        """What each task has in common with an item, the item named; empty where it repeats none. ``vectors`` are the
        questions as ``embedder`` embeds them."""
        ...


class Models(Protocol):
    """Opens the model that plays a role; the same configuration gives the same open model."""

    def open(self, actor: ActorConfig) -> Model:
        """The model of ``actor``, its weights loaded at the first call.

        Raises:
            ConfigError: no such provider.
        """
        ...


class Trainers(Protocol):
    """Opens the trainer that belongs to a role's provider."""

    def open(self, actor: ActorConfig) -> Trainer:
        """The trainer for ``actor``'s model.

        Raises:
            ConfigError: the provider's models cannot be trained here.
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


@dataclass(frozen=True)
class Root:
    """What exists in a call's file system beside interpreter and standard library: executables of the shell, and
    packages. Nothing that is not named here can be run or imported, whatever the code is."""

    executables: tuple[str, ...] = PolicyConfig().executables
    modules: tuple[str, ...] = PolicyConfig().modules


@dataclass(frozen=True)
class SandboxCall:
    """One fresh execution. ``files`` are laid into the empty work folder first (relative paths)."""

    kind: Literal["python", "shell"]
    code: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    wall_s: float = 5.0
    mem_mib: int = 512
    root: Root = Root()


@dataclass(frozen=True)
class SandboxResult:
    """What happened. ``files`` is the work folder afterwards; ``tier``: how memory was limited (cgroup, watchdog);
    ``output_bytes`` counts both outputs before they were cut."""

    state: ToolState
    rc: int | None
    stdout: str
    stderr: str
    wall_s: float
    cpu_s: float
    peak_mem_mib: float
    tier: str
    backend: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    reason: str = ""
    output_bytes: int = 0


class Sandbox(Protocol):
    """Runs code nobody has read. Fails closed: without a backend that passed its self-test every call is refused."""

    async def call(self, call: SandboxCall) -> SandboxResult:
        """Run once in fresh namespaces. Hostile code is a result, never an exception.

        Raises:
            SandboxUnavailableError: no backend passed its self-test.
        """
        ...

    async def close(self) -> None:
        """End every process."""
        ...


@dataclass(frozen=True)
class WebRequest:
    """One request a student wants made. ``hosts`` and ``methods`` are what its run allows."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    hosts: tuple[str, ...] = ()
    methods: tuple[str, ...] = ("GET",)


@dataclass(frozen=True)
class WebResponse:
    """What came of it. ``state`` ok: there was an answer, of any ``status``; refused: not allowed, ``reason`` says
    what; timeout, output_flood: a limit; error: no answer."""

    state: ToolState
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    reason: str = ""
    wall_s: float = 0.0
    url: str = ""
    """The address that answered, after redirects."""


@dataclass(frozen=True)
class Hit:
    """One search result. All of it is text of strangers."""

    title: str
    url: str
    text: str


class Web(Protocol):
    """The outside, for tools that a person has switched on. Lives in a process of its own."""

    async def fetch(self, request: WebRequest) -> WebResponse:
        """Make one request. Names are resolved once, and only public addresses are ever connected to."""
        ...

    async def search(self, query: str, limit: int) -> tuple[ToolState, str, list[Hit]]:
        """(state, reason, results) of the configured provider."""
        ...

    async def close(self) -> None:
        """End the process."""
        ...


class Artifacts(Protocol):
    """Content-addressed store. Written and fsynced before the event that names it."""

    def put(self, data: bytes, media: str = "application/octet-stream") -> Artifact:
        """Store ``data`` under its sha256."""
        ...

    def get(self, artifact: Artifact) -> bytes:
        """The content, its digest checked.

        Raises:
            NotFoundError: not in the store.
            LogError: the content does not match its digest.
        """
        ...


class History(Protocol):
    """Reading of what was stored, in stream order."""

    def read(self, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0) -> AsyncIterator[Recorded]:
        """Events of ``run`` with after < seq <= until (until 0: to the present end); all types where none is named."""
        ...
