"""One frozen object of settings. ``RunConfig`` is what a run's results depend on (it is stored in ``RunStarted``);
the rest says where and how this process works. Loading order: flag > AGENT0_* > .env > profile > user > defaults."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

LARGEST = 2**63 - 1
"""What a table's column holds; a larger number could be recorded, but never be shown."""

_ADDRESS = r"(nats|tls|wss?)://([^\s@/,]*@)?([\w.-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?/?"
_ADDRESSES = rf"^({_ADDRESS}(\s*,\s*{_ADDRESS})*)?$"
"""Of servers, as NATS wants them: ``nats://host:4222,nats://other:4222``."""


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
    quantization: Literal["", "4bit"] = Field("", description="transformers only: 4bit needs the qlora extra")
    device: str = Field("cpu", description="transformers only: cpu, cuda, cuda:1 …")


class StudentConfig(ActorConfig):
    """The student besides: its tools and limits."""

    tools: tuple[str, ...] = Field(("python", "sympy"), description="tools it may call")
    max_turns: int = Field(4, ge=1, le=1000, description="assistant turns an attempt")
    max_calls: int = Field(4, ge=0, le=1000, description="tool calls an attempt")


class CurriculumConfig(Frozen):
    """How tasks are asked for."""

    kind: Literal["bandit", "uniform"] = Field("bandit", description="bandit over domain x family x level, or uniform")
    domains: tuple[str, ...] = Field(("math", "logic", "code"), description="domains")
    levels: tuple[int, ...] = Field((1, 2, 3, 4), description="difficulty levels")
    exploration: float = Field(0.3, ge=0, le=1, description="share of slots given out uniformly")
    band: tuple[float, float] = Field((0.1, 0.9), description="frontier: solve rates that teach")
    similarity_limit: float = Field(0.95, gt=0, le=1, description="similarity above it: too similar")
    embedder: str = Field("minilm", description="minilm | ngram")


class RewardConfig(Frozen):
    """Which reward set, with which weights."""

    set: str = Field("agent0", description="registered reward set")
    weights: dict[str, float] = Field(default_factory=dict, description="part -> weight; others keep their default")


class RecipeConfig(Frozen):
    """Training of one role's adapter."""

    enabled: bool = Field(True, description="train this role at all")
    lr: float = Field(2.5e-3, gt=0, description="AdamW learning rate at the first iteration")
    lr_final: float = Field(0.2, gt=0, le=1, description="share of lr left at the last iteration (linear)")
    rank: int = Field(16, ge=1, le=65_536, description="LoRA rank")
    alpha: int = Field(32, ge=1, le=1_000_000, description="LoRA alpha")
    minibatch: int = Field(32, ge=1, le=1_000_000, description="trajectories a step")
    epochs: int = Field(1, ge=1, le=1000, description="passes over the samples")
    clip_low: float = Field(0.2, gt=0, description="lower clip of the importance ratio")
    clip_high: float = Field(0.2, gt=0, description="upper clip at solve rate 1")
    clip_bonus: float = Field(0.16, ge=0, description="added to the upper clip as the solve rate falls to 0")
    replay_steps: int = Field(
        8, ge=0, le=1_000_000, description="likelihood steps on own verified successes, an iteration"
    )
    replay_iterations: int = Field(3, ge=0, le=1_000_000, description="how many iterations back successes are replayed")
    weight_decay: float = Field(0.0, ge=0, description="AdamW weight decay")
    advantage: Literal["group", "centered"] = Field("group", description="group: divided by its deviation too")


class TrainingConfig(Frozen):
    """Both roles; ``provider`` is the trainer that belongs to the student's model."""

    student: RecipeConfig = RecipeConfig()
    teacher: RecipeConfig = RecipeConfig()


class EvaluationConfig(Frozen):
    """Held-out scoring. Nothing is ever chosen on test."""

    validation: int = Field(150, ge=1, le=1_000_000, description="tasks scored after each checkpoint")
    test: int = Field(300, ge=0, le=1_000_000, description="tasks scored for the first and the last checkpoint only")
    seed: int = Field(20260101, ge=0, le=LARGEST, description="draws the sets")
    forced_tool: bool = Field(True, description="score the untrained base with its tool forced, too")
    margin: float = Field(0.05, ge=0, description="promotion: validation accuracy may fall by this much at most")


class RunConfig(Frozen):
    """Everything a run's results depend on."""

    seed: int = Field(0, ge=0, le=LARGEST, description="seed of the whole run")
    iterations: int = Field(2, ge=1, le=100_000, description="rounds of propose, attempt, reward, train, evaluate")
    tasks: int = Field(12, ge=1, le=1000, description="tasks asked of the teacher an iteration")
    attempts: int = Field(4, ge=1, le=1000, description="attempts a task")
    on_failure: Literal["drop", "wait"] = Field("drop", description="a failed reaction: go on, or wait")
    teacher: ActorConfig = ActorConfig()
    student: StudentConfig = StudentConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    rewards: RewardConfig = RewardConfig()
    training: TrainingConfig = TrainingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    shuffle_rewards: bool = Field(False, description="control: student rewards are permuted within the iteration")


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

    workers: int = Field(2, ge=1, le=1024, description="zygotes")
    wall_s: float = Field(5, gt=0, le=3600, description="wall limit of a call, seconds")
    mem_mib: int = Field(512, ge=64, le=16_777_216, description="memory limit of a call, MiB")


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
    models: ModelSettings = ModelSettings()
