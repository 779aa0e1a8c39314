"""One frozen object of settings. ``RunConfig`` is what a run's results depend on (it is stored in ``RunStarted``);
the rest says where and how this process works. Loading order: flag > AGENT0_* > .env > profile > user > defaults."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

LARGEST = 2**63 - 1
"""What a table's column holds; a larger number could be recorded, but never be shown."""

_ADDRESS = r"(nats|tls|wss?)://([^\s@/,]*@)?([\w.-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?/?"
_ADDRESSES = rf"^({_ADDRESS}(\s*,\s*{_ADDRESS})*)?$"
"""Of servers, as NATS wants them: ``nats://host:4222,nats://other:4222``."""
_WEB_ADDRESS = r"^(https?://[^\s@]+)?$"
"""Without user and password, which would be shown."""


class Frozen(BaseModel):
    """Unknown keys are errors (a knob that does nothing misleads), and so is a number that is none or has no end."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ActorConfig(Frozen):
    """Which model plays a role and how it samples."""

    provider: str = Field("scripted", description="tiny | transformers | ollama | scripted, or a plugin's name")
    model: str = Field("", description="model name (ollama) or folder (transformers); empty: the provider's default")
    prompts: str = Field("compact", description="prompt style: a folder of agent0/prompts")
    temperature: float = Field(1.0, ge=0, le=100, description="sampling temperature; 0 is greedy")
    top_p: float = Field(1.0, gt=0, le=1, description="nucleus")
    max_tokens: int = Field(96, ge=1, le=1_000_000, description="tokens a turn")
    num_ctx: int = Field(8192, ge=128, le=100_000_000, description="context window asked of ollama")
    timeout_s: float = Field(300, gt=0, le=86_400, description="one model call, seconds")
    price: tuple[float, float] = Field((0, 0), description="cost of a million tokens read and written; for reports")
    quantization: Literal["", "4bit"] = Field("", description="transformers only: 4bit needs the qlora extra")
    device: str = Field("cpu", description="transformers only: cpu, cuda, cuda:1 …")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "auto", description="transformers only: of weights and activations; auto: fp32 on a CPU, bf16 on a GPU"
    )


class StudentConfig(ActorConfig):
    """The student besides: its tools and limits."""

    tools: tuple[str, ...] = Field(("python", "sympy"), description="tools it may call")
    max_turns: int = Field(4, ge=1, le=1000, description="assistant turns an attempt")
    max_calls: int = Field(4, ge=0, le=1000, description="tool calls an attempt")
    long_factor: int = Field(6, ge=1, le=100, description="a long task has this many times the turns and calls")
    tool_seconds: float = Field(
        60, gt=0, le=86_400, description="tool time an attempt, seconds; then calls are refused"
    )
    tool_output: int = Field(65_536, ge=256, le=10_000_000, description="characters of tool output an attempt may read")


_SHELL = (
    "[ awk base64 basename bash bc cat chmod cmp column comm cp cut date diff dirname du echo env expr factor false "
    "find fold grep gunzip gzip head id join ln ls md5sum mkdir mktemp mv nl nohup numfmt od paste printenv printf "
    "readlink realpath rev rm rmdir ruff sed seq setsid sh sha256sum shuf sleep sort split stat tac tail tar tee test "
    "timeout touch tr true uniq wc xargs yes"
)


class PolicyConfig(Frozen):
    """What the student's tools may touch. For executables and modules the boundary is that nothing else exists."""

    executables: tuple[str, ...] = Field(tuple(_SHELL.split()), description="programs of the shell")
    modules: tuple[str, ...] = Field(("mpmath", "numpy", "sympy"), description="packages beside the standard library")
    hosts: tuple[str, ...] = Field((), description="hosts http_request may reach; *.example.org for all below it")
    methods: tuple[str, ...] = Field(("GET", "HEAD"), description="HTTP methods")
    sql: tuple[str, ...] = Field(
        ("ALTER", "CREATE", "DELETE", "DROP", "EXPLAIN", "INSERT", "PRAGMA", "REPLACE", "SELECT", "UPDATE", "WITH"),
        description="first words of statements for sqlite_query",
    )
    paths: tuple[str, ...] = Field(("*",), description="work files that file tools may write, as patterns")
    withheld: tuple[str, ...] = Field((), description="packages that tools bring along (pytest) and may not use")


class CurriculumConfig(Frozen):
    """How tasks are asked for."""

    kind: Literal["bandit", "uniform"] = Field("bandit", description="bandit over domain x family x level, or uniform")
    domains: tuple[str, ...] = Field(("math", "logic", "code"), description="domains")
    families: tuple[str, ...] = Field(
        ("computed", "checked"), description="families, or all that compute their answers, or all that only check them"
    )
    levels: tuple[int, ...] = Field((1, 2, 3, 4), description="difficulty levels")
    long: float = Field(0.0, ge=0, le=1, description="share of slots that ask for long tasks, with subgoals")
    exploration: float = Field(0.3, ge=0, le=1, description="share of slots given out uniformly")
    entropy: float = Field(0.0, ge=0, le=1, description="chances of a domain's arms keep this share of full entropy")
    max_share: float = Field(1.0, gt=0, le=1, description="share of an iteration's tasks that a family may have")
    patience: int = Field(0, ge=0, le=10_000, description="iterations after which a forgotten arm comes first; 0: none")
    band: tuple[float, float] = Field((0.1, 0.9), description="frontier: solve rates that teach")
    similarity_limit: float = Field(0.95, gt=0, le=1, description="similarity above it: too similar")
    embedder: str = Field("minilm", description="minilm | ngram")
    overlap_ngram: int = Field(8, ge=3, le=50, description="words in a row shared with a benchmark item: contaminated")
    overlap_limit: float = Field(0.95, gt=0, le=1, description="similarity to a benchmark item above it: contaminated")


class CalibratorConfig(Frozen):
    """Which calibrator turns an attempt's signals into one probability; `agent0 reward calibrator` prints one."""

    signal: str = Field("", description="signals of agent0.confidence with + between them; empty: none")
    method: Literal["temperature", "platt", "isotonic", "logistic"] = Field(
        "logistic", description="of agent0 calibrate"
    )
    parameters: tuple[float, ...] = Field((), description="as CalibratorFitted has them")


class RewardConfig(Frozen):
    """Which reward set, with which weights."""

    set: str = Field("agent0", description="registered reward set; agent0 reward list names them")
    weights: dict[str, float] = Field(default_factory=dict, description="part -> weight; others keep their default")
    normalize: bool = Field(
        False, description="totals less the mean, by the deviation, of the role's receipts of earlier iterations"
    )
    clip: float = Field(0.0, ge=0, description="totals are kept within plus and minus this; 0: they are not")
    edition: int = Field(3, ge=1, le=3, description="1 and 2: as earlier versions paid; see docs/rewards.md")
    calibrator: CalibratorConfig = CalibratorConfig()


class RecipeConfig(Frozen):
    """Training of one role's adapter."""

    enabled: bool = Field(True, description="train this role at all")
    objective: str = Field(
        "adpo", description="adpo | grpo | reinforce | rloo | sft | dpo (the last two: student only) | none"
    )
    optimizer: Literal["adamw", "muon"] = Field(
        "adamw", description="muon: steps of equal size in all directions of a matrix; faster on small models"
    )
    lr: float = Field(2.5e-3, gt=0, description="learning rate at the first iteration")
    lr_final: float = Field(0.2, gt=0, le=1, description="share of lr left at the last iteration (linear)")
    rank: int = Field(
        16, ge=0, le=65_536, description="LoRA rank; 0: no LoRA, all weights of a small model (docs/engine.md)"
    )
    alpha: int = Field(32, ge=1, le=1_000_000, description="LoRA alpha")
    minibatch: int = Field(32, ge=1, le=1_000_000, description="trajectories a step")
    epochs: int = Field(1, ge=1, le=1000, description="passes over the samples")
    clip_low: float = Field(0.2, gt=0, description="lower clip of the importance ratio")
    clip_high: float = Field(0.2, gt=0, description="upper clip; adpo: at solve rates from 0.8")
    clip_bonus: float = Field(
        0.16, ge=0, description="adpo: added to the upper clip, all of it at solve rates up to 0.3 (released code: 0.1)"
    )
    kl: float = Field(0.0, ge=0, description="penalty for leaving the parent (KL, estimated); not for sft and dpo")
    importance: Literal["sequence", "token"] = Field(
        "sequence", description="rloo: ratio to the sampling policy of a whole attempt, or of each token (older runs)"
    )
    beta: float = Field(0.1, gt=0, description="dpo: how dear it is to leave the parent")
    replay_steps: int = Field(
        8, ge=0, le=1_000_000, description="likelihood steps on own verified successes and lessons, an iteration"
    )
    replay_iterations: int = Field(3, ge=0, le=1_000_000, description="how many iterations back successes are replayed")
    lessons: Literal["", "search"] = Field(
        "", description="student: search: likelihood of its own searches, retraced, instead of replayed successes"
    )
    hindsight: bool = Field(True, description="lessons: what a wrong answer really solves is a lesson, too")
    explore: float = Field(
        0.0, ge=0, le=1, description="lessons: share of the iterations, from the first on, without wrong tries in them"
    )
    replay_by: Literal["chance", "pattern"] = Field(
        "chance", description="which successes: any, or balanced over levels and ways to solve"
    )
    replay_per_task: int = Field(2, ge=1, le=1000, description="successes of one task that are replayed, at most")
    weight_decay: float = Field(0.0, ge=0, description="decoupled weight decay")
    advantage: Literal["group", "centered"] = Field(
        "group", description="adpo and grpo: divided by the group's deviation, or not"
    )
    micro_batch: int = Field(
        0, ge=0, le=1_000_000, description="trajectories a forward pass, gradients summed; 0: as many as fit by rule"
    )
    gradient_checkpointing: Literal["auto", "on", "off"] = Field(
        "auto", description="compute activations twice rather than keep them; auto: on a GPU"
    )
    processes: int = Field(1, ge=1, le=1024, description="training processes, one a GPU, by accelerate launch")
    on_nan: Literal["skip", "fail"] = Field(
        "skip", description="too many steps without a finite loss: alarm, or no checkpoint"
    )
    nan_share: float = Field(0.1, ge=0, le=1, description="share of such steps that is too many")

    def told(self) -> dict[str, Any]:
        """As manifests and adapters name it. What later versions added is named only where it is not the default, so
        that the same training has the same digest under every version."""
        added = {name for name in LATER if getattr(self, name) == type(self).model_fields[name].default}
        ours = self.objective == "rloo" and self.importance != "token"
        return self.model_dump(exclude=added if ours else {*added, "importance"})


LATER = (
    "optimizer", "lessons", "hindsight", "explore", "objective", "kl", "beta", "replay_by", "replay_per_task",
    "micro_batch", "gradient_checkpointing", "processes", "on_nan", "nan_share",
)  # fmt: skip
"""Settings that earlier versions lack; their defaults are what those did. ``importance`` lacks too: ``token`` then."""


class TrainingConfig(Frozen):
    """Both roles; ``provider`` is the trainer that belongs to the student's model."""

    schedule: Literal["joint", "alternate", "student", "teacher"] = Field(
        "joint", description="who is trained: both, in turns (teacher first, as in the paper), or one alone"
    )
    student: RecipeConfig = RecipeConfig()
    teacher: RecipeConfig = RecipeConfig()


class JudgeConfig(ActorConfig):
    """A model that is asked whether an answer is right; one vote among others. Off unless a provider is named."""

    provider: str = Field("", description="who judges, named as for run.student; empty: no judge")
    temperature: float = Field(0.0, ge=0, le=100, description="sampling temperature; 0 is greedy")
    max_tokens: int = Field(16, ge=1, le=1_000_000, description="tokens a verdict")


class VerificationConfig(Frozen):
    """What becomes of questions that neither a family nor a program answers, and of verdicts that are undecided."""

    unchecked: str = Field(
        "refuse",
        description="questions that no family and no program answers: refuse, panel (several independent checks), "
        "self_consistency (the majority is right, as in the paper), or a plugin's verifier of several attempts",
    )
    undecided: Literal["leave", "ask"] = Field("leave", description="ask: the run waits for agent0 task review")
    agreeing: int = Field(3, ge=2, le=1000, description="panel: attempts that must say the same")
    agreement: float = Field(0.6, gt=0.5, le=1, description="panel: and their share of all attempts")
    judge: JudgeConfig = JudgeConfig()


class EvaluationConfig(Frozen):
    """Held-out scoring. Nothing is ever chosen on test."""

    validation: int = Field(150, ge=1, le=1_000_000, description="tasks scored after each checkpoint")
    test: int = Field(300, ge=0, le=1_000_000, description="tasks scored for the first and the last checkpoint only")
    seed: int = Field(20260101, ge=0, le=LARGEST, description="draws the sets")
    levels: tuple[int, ...] = Field((), description="levels scored; empty: all")
    checked: int = Field(
        0, ge=0, le=1000, description="sampled attempts at an item that can be checked, until one is right; 0: none"
    )
    forced_tool: bool = Field(True, description="score the untrained base with its tool forced, too")
    gate: Literal["no_worse", "better", "open"] = Field(
        "no_worse", description="no_worse refuses a proven or large loss; better wants a proven gain; open: no refusal"
    )
    margin: float = Field(0.05, ge=0, description="no_worse: validation accuracy below the best one's, at most")
    calibration: float = Field(
        0.05, ge=0, le=1, description="no_worse: proven rise of the Brier score, unless so is a gain; 1: any rise"
    )


Action = Literal["off", "alarm", "pause", "rollback"]
"""What a guard does: rollback goes back to the best checkpoint before the present one, and raises the alarm, too."""


class GuardConfig(Frozen):
    """What watches a run. An alarm is raised where a condition begins to hold and resolved where it no longer does."""

    labels: Action = Field("alarm", description="majority answers are mostly wrong, or are getting worse")
    collapse: Action = Field("alarm", description="the student grows too sure, too brief, too uniform or falls silent")
    plateau: Action = Field("alarm", description="validation has not risen for guards.patience iterations")
    drift: Action = Field("alarm", description="what is paid rises while validation falls")
    divergence: Action = Field("alarm", description="the teacher's tasks are beyond the student, or beneath it")
    patience: int = Field(3, ge=2, le=1000, description="iterations that plateau, drift and divergence look back on")


class RunConfig(Frozen):
    """Everything a run's results depend on."""

    seed: int = Field(0, ge=0, le=LARGEST, description="seed of the whole run")
    iterations: int = Field(2, ge=1, le=100_000, description="rounds of propose, attempt, reward, train, evaluate")
    tasks: int = Field(12, ge=1, le=1000, description="tasks asked of the teacher an iteration")
    attempts: int = Field(4, ge=1, le=1000, description="attempts a task")
    on_failure: Literal["drop", "wait"] = Field("drop", description="a failed reaction: go on, or wait")
    teacher: ActorConfig = ActorConfig()
    student: StudentConfig = StudentConfig()
    policy: PolicyConfig = PolicyConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    rewards: RewardConfig = RewardConfig()
    training: TrainingConfig = TrainingConfig()
    verification: VerificationConfig = VerificationConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    guards: GuardConfig = GuardConfig()
    shuffle_rewards: bool = Field(False, description="control: student rewards are permuted within the iteration")

    @classmethod
    def recorded(cls, plain: Mapping[str, Any]) -> "RunConfig":
        """The configuration that a log holds. One that names no edition of its rewards is older than the second, no
        calibration: its gate does not look at it, no importance: a recipe weighs token by token."""
        held = plain.get("training", {})
        recipes = {role: {"importance": "token"} | held.get(role, {}) for role in ("student", "teacher")}
        older = {"rewards": {"edition": 1}, "evaluation": {"calibration": 1.0}}
        known = {name: old | plain.get(name, {}) for name, old in older.items()} | {"training": {**held, **recipes}}
        return cls.model_validate({**plain, **known})


class NatsSettings(Frozen):
    """The log's server. Empty url: an embedded nats-server with its data under ``home``."""

    url: str = Field("", pattern=_ADDRESSES, description="external server; AGENT0_NATS_URL sets it")
    user: str = Field("", description="user of the external server")
    password: SecretStr = Field(SecretStr(""), description="its password (environment or file only)")
    credentials: Path | None = Field(None, description="NATS .creds file")
    tls_ca: Path | None = Field(None, description="CA file for TLS")
    replicas: int = Field(1, ge=1, le=5, description="stream replicas (a cluster: 3)")
    duplicate_window_s: float = Field(
        600, gt=0, le=31_536_000, description="server-side deduplication window; fixed at log init"
    )
    max_bytes: int = Field(8 << 30, gt=0, le=LARGEST, description="largest size of the event stream")
    seal_every: int = Field(5000, ge=1, le=1_000_000, description="events of a sealed segment of the log, at most")


class HandlerSettings(Frozen):
    """How handler processes consume."""

    ack_wait_s: float = Field(30, gt=0, le=86_400, description="redelivery after a process died")
    max_deliver: int = Field(10, ge=1, le=1_000_000, description="deliveries before a reaction is given up")
    retry_delay_s: float = Field(1, gt=0, le=3600, description="first delay before another try; doubles, at most 60 s")
    in_flight: int = Field(
        0, ge=0, le=100_000, description="overrides every unordered handler's own bound; 0: as declared"
    )
    commit_ms: float = Field(3, ge=0, le=60_000, description="how long effects are gathered into one atomic batch")


class SandboxSettings(Frozen):
    """The student's and the verifier's sandbox."""

    backend: Literal["auto", "zygote-bwrap", "zygote-docker", "bwrap-cold", "docker-cold"] = Field(
        "auto", description="auto: the first, in this order, that passes its self-test; there is no weaker one"
    )
    workers: int = Field(2, ge=1, le=1024, description="zygotes")
    calls: int = Field(2, ge=1, le=64, description="calls at once on a zygote")
    queue: int = Field(512, ge=1, le=1_000_000, description="calls that may wait; one more is told busy")
    wall_s: float = Field(5, gt=0, le=3600, description="wall limit of a call, seconds")
    verifier_wall_s: float = Field(30, gt=0, le=3600, description="the same for programs that a verifier runs")
    mem_mib: int = Field(512, ge=64, le=16_777_216, description="memory limit of a call, MiB")
    recycle_calls: int = Field(1000, ge=1, le=1_000_000, description="a zygote is replaced after this many calls")
    recycle_s: float = Field(600, ge=1, le=86_400, description="and after this many seconds of use")
    cgroup: Literal["auto", "never"] = Field(
        "auto", description="auto: memory is also limited by a cgroup where one may"
    )
    engine: Literal["docker", "podman"] = Field("docker", description="container engine of the docker backends")
    image: str = Field("agent0-sandbox", description="image of the docker backends")
    runtime: Literal["", "runsc"] = Field("", description="runsc: gVisor under the docker backends")


class WebSettings(Frozen):
    """The outside, for http_request and web_search. Off by default."""

    enabled: bool = Field(False, description="start the proxy process for http_request")
    timeout_s: float = Field(10, gt=0, le=600, description="one request, redirects included")
    max_bytes: int = Field(1 << 20, ge=1, le=1 << 30, description="largest body, both ways")
    redirects: int = Field(3, ge=0, le=20, description="redirects followed; each is checked anew")
    search: Literal["", "searxng", "brave"] = Field("", description="provider of web_search; empty: off")
    search_url: str = Field("", pattern=_WEB_ADDRESS, description="its server; empty: the provider's own")
    search_key: SecretStr = Field(SecretStr(""), description="its key (environment or file only)")


class McpServer(Frozen):
    """One MCP server. ``stdio`` servers run in the sandbox; ``http`` ones only where ``trust`` is their digest."""

    transport: Literal["stdio", "http"] = Field("stdio", description="stdio: runs inside the sandbox")
    command: tuple[str, ...] = Field((), description="stdio: program and arguments")
    files: Path | None = Field(None, description="stdio: folder laid into its work folder")
    url: str = Field("", pattern=_WEB_ADDRESS, description="http: address")
    trust: str = Field("", description="sha256 of its tool list; `agent0 tool mcp NAME` shows it")


class McpSettings(Frozen):
    """MCP servers as a source of tools. None by default."""

    servers: dict[str, McpServer] = Field(default_factory=dict, description="name -> server")


class BenchmarkSettings(Frozen):
    """Rows of benchmarks, for scores and so that no task repeats one."""

    folder: Path | None = Field(None, description="folder with the rows; AGENT0_BENCHMARKS sets it")


class ModelSettings(Frozen):
    """Where models run."""

    threads: int = Field(1, ge=1, le=4096, description="torch threads of a model or training process")
    max_batch: int = Field(256, ge=1, le=1_000_000, description="largest generation batch")
    ollama_url: str = Field("http://127.0.0.1:11434", description="ollama server")


class Settings(Frozen):
    """Everything."""

    home: Path = Field(Path(), description="data folder; AGENT0_HOME sets it")
    profile: str = Field("", description="name of the profile in use")
    run: RunConfig = RunConfig()
    nats: NatsSettings = NatsSettings()
    handlers: HandlerSettings = HandlerSettings()
    sandbox: SandboxSettings = SandboxSettings()
    web: WebSettings = WebSettings()
    mcp: McpSettings = McpSettings()
    models: ModelSettings = ModelSettings()
    benchmarks: BenchmarkSettings = BenchmarkSettings()
