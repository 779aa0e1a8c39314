"""Settings of the models that play a role, and of what the student's tools may access."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from agent0.settings.base import SERVER_ADDRESSES, Frozen
from agent0.settings.rewards import CalibratorConfig

PACKAGED_MODELS = frozenset({"", "tools", "climb", "climb_teacher", "long"})
"""Names of the models packaged with Agent0, which were taught the prompts of style compact and answer in a line."""
_PACKAGED_PROMPTS, _PACKAGED_TOKENS = "compact", 96


def is_packaged(provider: str, model: str) -> bool:
    """Whether ``provider`` plays a packaged model, or none at all, and no language model."""
    return provider in ("tiny", "scripted", "sampler") or (provider == "llamacpp" and model in PACKAGED_MODELS)


class ActorConfig(Frozen):
    """Which model plays a role and how it samples. What nobody set of prompts and tokens is as the model needs it."""

    provider: str = Field(
        "scripted",
        description="tiny | transformers | ollama | openai | anthropic | llamacpp | scripted | sampler (a teacher that "
        "draws tasks), or a plugin's name; provider/model names the model, too",
    )
    model: str = Field(
        "",
        description="a name that `agent0 model get` stored; name at the server (ollama, openai, anthropic), folder or "
        "GGUF file (transformers, llamacpp); empty: the provider's default",
    )
    base_url: str = Field(
        "",
        pattern=SERVER_ADDRESSES,
        description="openai, anthropic: address of the server, http://127.0.0.1:8000/v1; openai: or of several that "
        "have the same model, a list; ollama: as models.ollama_url was when the run began",
    )
    key_env: str = Field(
        "",
        pattern=r"^([A-Za-z_]\w*)?$",
        description="openai, anthropic: environment variable that holds the server's key",
    )
    tokenizer: str = Field(
        "",
        description="openai only: folder with tokenizer and chat template of the served model; prompts then go as ids",
    )
    prompts: str = Field(
        "full",
        description="prompt style, a folder of agent0/rollout/prompts; packaged models: compact unless set; of the "
        "student a prompt's own text, too, with {question} in it",
    )
    json_schema: bool = Field(
        False, description="teacher, ollama and openai: the server lets it write nothing but a task's JSON object"
    )
    temperature: float = Field(1.0, ge=0, le=100, description="sampling temperature; 0 is greedy")
    top_p: float = Field(1.0, gt=0, le=1, description="nucleus")
    max_tokens: int = Field(1024, ge=1, le=1_000_000, description="tokens a turn; packaged models: 96 unless set")
    thinking: Literal["", "off", "on", "minimal", "low", "medium", "high"] = Field(
        "",
        description="whether it thinks before it answers, or how hard, in each server's own words; empty: as its "
        "template or server has it, and of ollama off",
    )
    template_arguments: dict[str, bool | int | float | str] = Field(
        default_factory=dict,
        description="arguments of its chat template (chat_template_kwargs), where that is rendered here or by vLLM, "
        "SGLang, llama.cpp",
    )
    num_ctx: int = Field(
        8192, ge=128, le=100_000_000, description="context window: asked of ollama, given to a slot of llamacpp"
    )
    timeout_s: float = Field(
        300, gt=0, le=86_400, description="seconds until a model call's first token, once it has its turn"
    )
    silent_s: float = Field(
        30, gt=0, le=86_400, description="seconds without a word in the middle of an answer: the server counts as away"
    )
    parallel: int = Field(4, ge=1, le=100_000, description="calls at once to a model server; more wait here")
    price: tuple[float, float] = Field((0, 0), description="cost of a million tokens read and written; for reports")
    quantization: Literal["", "4bit"] = Field("", description="transformers only: 4bit needs the qlora extra")
    device: str = Field("cpu", description="transformers only: cpu, cuda, cuda:1 …")
    precision: Literal["auto", "fp32", "bf16", "fp16", "int8"] = Field(
        "auto",
        description="transformers only: of weights and activations; auto: bf16 on a GPU, fp32 on a CPU, where models "
        "of over 134 million weights are computed in the quicker of fp32 and bf16, or int8 where that is much quicker",
    )
    train_precision: Literal["", "fp32", "bf16", "fp16", "int8"] = Field(
        "",
        description="transformers only: `precision` where the role is trained; empty: the same. fp32 with its "
        "`correction` has exact log-probabilities of what a quicker format sampled",
    )

    @property
    def addresses(self) -> tuple[str, ...]:
        """Each address in ``base_url`` once."""
        return tuple(dict.fromkeys(url for part in self.base_url.split(",") if (url := part.strip())))

    @property
    def as_trained(self) -> Self:
        """The role in the precision that it is trained in."""
        return self.model_copy(update={"precision": self.train_precision or self.precision})

    @model_validator(mode="after")
    def _one_server(self) -> Self:
        """Raises ValueError where several servers are named of a provider that asks one."""
        if len(self.addresses) > 1 and self.provider != "openai":
            raise ValueError(f"base_url names {len(self.addresses)} servers; only provider openai takes several")
        return self

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, settings: Any) -> Any:
        """Take ``provider/model`` apart, and fill in what a packaged model needs."""
        if not isinstance(settings, dict):
            return settings
        settings = _separated(_listed(settings))
        provider = settings.get("provider", cls.model_fields["provider"].default)
        if not is_packaged(str(provider), str(settings.get("model", ""))):
            return settings
        tokens = min(_PACKAGED_TOKENS, cls.model_fields["max_tokens"].default)
        return {"prompts": _PACKAGED_PROMPTS, "max_tokens": tokens} | settings


def _listed(settings: dict[str, object]) -> dict[str, object]:
    """A list of addresses as one text."""
    urls = settings.get("base_url")
    return {**settings, "base_url": ",".join(map(str, urls))} if isinstance(urls, list | tuple) else settings


def _separated(settings: dict[str, object]) -> dict[str, object]:
    """``provider/model`` as two settings. Raises ValueError where they name two models."""
    provider, slash, model = str(settings.get("provider", "")).partition("/")
    if not slash:
        return settings
    if settings.get("model") not in (None, "", model):
        raise ValueError(f"provider names the model {model}, and model names {settings['model']}")
    return {**settings, "provider": provider, "model": model}


class RoutingConfig(Frozen):
    """How a role chooses between its model and those that stand in (`agent0 router strategies`)."""

    strategy: str = Field(
        "", description="a strategy's name; empty: stand-ins are asked only where the model cannot answer"
    )
    threshold: float = Field(0.7, ge=0, le=1, description="confidence from which an answer is given")
    worth_usd: float = Field(0, ge=0, le=1_000_000, description="cost_aware: what a right answer is worth")
    share: float = Field(0.5, ge=0, le=1, description="ab: share of questions that the second model gets")
    allowance_usd: float | None = Field(
        None, ge=0, le=1_000_000, description="budgeted: what the role's questions of a run may cost together"
    )
    right: dict[str, float] = Field(
        default_factory=dict, description="provider/model -> how often it is right, measured on verified tasks"
    )
    calibrators: dict[str, CalibratorConfig] = Field(
        default_factory=dict,
        description="model, as a decision names it -> calibrator of its features (`agent0 router calibrate`); without "
        "one its confidence is mean_token as it is",
    )
    samples: int = Field(
        0,
        ge=0,
        le=64,
        description="further samples of each turn of a model that costs nothing: how far it agrees with itself is a "
        "feature",
    )
    self_critique: bool = Field(
        False, description="ask a model that costs nothing whether its answer is right: another feature"
    )


class TeacherConfig(ActorConfig):
    """The teacher's model, and how some of its tasks are written otherwise than it would."""

    explore: float = Field(
        0.0, ge=0, le=1, description="share of an iteration's requests that are written under `bias`: exploration"
    )
    fallback: tuple[str, ...] = Field(
        (), description="models that stand in where it cannot answer, in order: provider/model"
    )
    routing: RoutingConfig = RoutingConfig()
    bias: tuple[tuple[str, float], ...] = Field(
        (), description="[text of a token, what is added to its logit] on these requests; models run here only"
    )


class StudentConfig(ActorConfig):
    """The student's model, tools and limits per attempt."""

    tools: tuple[str, ...] = Field(("python", "sympy"), description="tools it may call")
    tool_form: Literal["auto", "template", "actions", "brackets", "fence"] = Field(
        "auto",
        description="how it is to call tools; template: as its chat template says; fence: with a block of code in the "
        "tool's name; brackets: with JSON between [tool_call] and [/tool_call]; actions: with two lines, Action and "
        "Action Input; auto: template for packaged models, else fence, or what five probes say where a template in the "
        "model's folder or file teaches a form",
    )
    max_turns: int = Field(4, ge=1, le=1000, description="assistant turns an attempt")
    max_calls: int = Field(4, ge=0, le=1000, description="tool calls an attempt")
    program_answers: bool = Field(
        False, description="the last line that a call prints is the answer, and no turn follows (prompts: programs)"
    )
    long_factor: int = Field(6, ge=1, le=100, description="a long task has this many times the turns and calls")
    shown_files: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="it reads its work folder with the question where its files have so many bytes at most, else their "
        "names; 0: neither",
    )
    tool_seconds: float = Field(
        60, gt=0, le=86_400, description="tool time an attempt, seconds; then calls are refused"
    )
    tool_output: int = Field(65_536, ge=256, le=10_000_000, description="characters of tool output an attempt may read")
    choices: int = Field(
        1,
        ge=1,
        le=128,
        description="openai, llamacpp: first turns of one task's attempts asked for in one call, at most, where the "
        "server draws choice i with seed + i; 1: each turn has a seed of its own",
    )
    self_critique: bool = Field(
        False, description="ask it behind each answer whether that is right: a confidence signal and reward parts"
    )
    distil_from: tuple[str, ...] = Field(
        (),
        description="models that stand in for it in attempts at the run's tasks, in order: provider/model; never in a "
        "run's evaluation. Their answers are labelled, and trained on only by `run.training.student.distil`",
    )
    distil_routing: RoutingConfig = Field(RoutingConfig(), description="how it chooses between its model and these")

    @property
    def form(self) -> str:
        """How it calls tools (``tool_form``)."""
        if self.tool_form != "auto":
            return self.tool_form
        return "template" if is_packaged(self.provider, self.model) else "fence"

    @property
    def uses_tools(self) -> bool:
        """Whether it may call any tool."""
        return bool(self.tools and self.max_calls)

    def in_rollouts(self) -> "StudentConfig":
        """The student as it attempts tasks that may be trained on: with the models of ``distil_from`` behind it."""
        if not self.distil_from:
            return self
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return RoutedStudentConfig(**fields, fallback=self.distil_from, routing=self.distil_routing)


class RoutedStudentConfig(StudentConfig):
    """A student with models that stand in for it. No setting: made by ``StudentConfig.in_rollouts``."""

    fallback: tuple[str, ...] = ()
    routing: RoutingConfig = RoutingConfig()


_SHELL = (
    "[ awk base64 basename bash bc cat chmod cmp column comm cp cut date diff dirname du echo env expr factor false "
    "find fold grep gunzip gzip head id join ln ls md5sum mkdir mktemp mv nl nohup numfmt od paste printenv printf "
    "readlink realpath rev rm rmdir ruff sed seq setsid sh sha256sum shuf sleep sort split stat tac tail tar tee test "
    "timeout touch tr true uniq wc xargs yes"
)


class PolicyConfig(Frozen):
    """What the student's tools may access. Executables and modules that are not listed do not exist in its sandbox."""

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


class JudgeConfig(ActorConfig):
    """The judge model, whose opinion is one vote of the verification panel. Off unless a provider is named."""

    provider: str = Field("", description="who judges, named as for run.student; empty: no judge")
    fallback: tuple[str, ...] = Field(
        (), description="models that stand in where it cannot answer, in order: provider/model"
    )
    routing: RoutingConfig = RoutingConfig()
    temperature: float = Field(0.0, ge=0, le=100, description="sampling temperature; 0 is greedy")
    max_tokens: int = Field(16, ge=1, le=1_000_000, description="tokens a verdict")
