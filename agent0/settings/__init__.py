"""All settings as one frozen object.

``RunConfig`` is what a run's results depend on and is stored in ``RunStarted``; the rest says where and how this
process works. Loading order: flag > AGENT0_* > .env > profile > user > defaults.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

from pydantic import Field, PrivateAttr

from agent0.events.base import sha256
from agent0.settings.base import LARGEST, Frozen
from agent0.settings.curriculum import CurriculumConfig, DocumentsConfig, QuestionsConfig
from agent0.settings.evaluation import Action, EnergyConfig, EvaluationConfig, GuardConfig, VerificationConfig
from agent0.settings.process import (
    ApiSettings,
    ArtifactSettings,
    BenchmarkSettings,
    HandlerSettings,
    McpServer,
    McpSettings,
    ModelSettings,
    NatsSettings,
    SandboxSettings,
    TelemetrySettings,
    WebSettings,
)
from agent0.settings.rewards import CalibratorConfig, GainConfig, RewardConfig
from agent0.settings.roles import (
    ActorConfig,
    JudgeConfig,
    PolicyConfig,
    RoutingConfig,
    StudentConfig,
    TeacherConfig,
)
from agent0.settings.router import (
    CacheSettings,
    CapSettings,
    PriceSettings,
    RetrySettings,
    RouterSettings,
    ServerSettings,
)
from agent0.settings.training import RecipeConfig, TrainingConfig, recorded_recipe

__all__ = [
    "LARGEST",
    "Action",
    "ActorConfig",
    "ApiSettings",
    "ArtifactSettings",
    "BenchmarkSettings",
    "CacheSettings",
    "CalibratorConfig",
    "CapSettings",
    "CurriculumConfig",
    "DocumentsConfig",
    "EnergyConfig",
    "EvaluationConfig",
    "Frozen",
    "GainConfig",
    "GuardConfig",
    "HandlerSettings",
    "JudgeConfig",
    "McpServer",
    "McpSettings",
    "ModelSettings",
    "NatsSettings",
    "PolicyConfig",
    "PriceSettings",
    "QuestionsConfig",
    "RecipeConfig",
    "RetrySettings",
    "RewardConfig",
    "RouterSettings",
    "RoutingConfig",
    "RunConfig",
    "SandboxSettings",
    "ServerSettings",
    "Settings",
    "StudentConfig",
    "TeacherConfig",
    "TelemetrySettings",
    "TrainingConfig",
    "VerificationConfig",
    "WebSettings",
]


NOWHERE: Mapping[str, str] = {}


class RunConfig(Frozen):
    """The settings that a run's results depend on; recorded in ``RunStarted`` together with their hash."""

    seed: int = Field(0, ge=0, le=LARGEST, description="seed of the whole run")
    iterations: int = Field(2, ge=1, le=100_000, description="rounds of propose, attempt, reward, train, evaluate")
    time_limit: float = Field(
        0,
        ge=0,
        le=31_536_000,
        description="seconds of work after which no iteration begins, in place of `iterations` (lr then stays as it is "
        "and nothing settles); 0: none. run start --for",
    )
    tasks: int = Field(12, ge=1, le=1000, description="tasks asked of the teacher an iteration")
    refill: float = Field(
        1.0,
        ge=1,
        le=10,
        description="most tasks of an iteration, as a multiple of `tasks`: where fewer than `tasks` have attempts with "
        "contrast (a solve rate within `curriculum.band`, rewards that differ), others are asked for; 1: none",
    )
    attempts: int = Field(4, ge=1, le=1000, description="attempts a task")
    on_failure: Literal["drop", "wait"] = Field("drop", description="a failed reaction: go on, or wait")
    max_given_up: float = Field(
        0.05, ge=0, le=1, description="share of an iteration's attempts given up above which the run fails; 1: never"
    )
    max_untrained: int = Field(
        2, ge=0, le=100_000, description="iterations in a row with nothing to train on until the run fails; 0: never"
    )
    give_up_after: float = Field(
        0,
        ge=0,
        le=31_536_000,
        description="seconds for which a dependency is waited for until the run fails; 0: for ever",
    )
    teacher: TeacherConfig = TeacherConfig()
    student: StudentConfig = StudentConfig()
    policy: PolicyConfig = PolicyConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    questions: QuestionsConfig = QuestionsConfig()
    documents: DocumentsConfig = DocumentsConfig()
    rewards: RewardConfig = RewardConfig()
    training: TrainingConfig = TrainingConfig()
    verification: VerificationConfig = VerificationConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    energy: EnergyConfig = EnergyConfig()
    guards: GuardConfig = GuardConfig()
    plugins: dict[str, str] = Field(
        default_factory=dict,
        description="file name without .py -> sha256 of each file of `plugins`; filled in where it is loaded",
    )

    @property
    def planned_iterations(self) -> int | None:
        """How many iterations it makes; None where its time decides."""
        return None if self.time_limit else self.iterations

    @property
    def most_tasks(self) -> int:
        """How many tasks an iteration may ask for, with those in place of tasks without contrast."""
        return int(self.refill * self.tasks)

    @property
    def has_teacher(self) -> bool:
        """Whether a teacher proposes any of its tasks: not where all are rows of a file."""
        return not self.questions.file or self.questions.share < 1

    @property
    def servers(self) -> dict[str, str]:
        """Addresses of the servers of its models, by role. Where it runs is no part of what a run is."""
        return {role: actor.base_url for role, actor in self.actors.items() if actor.base_url}

    @property
    def actors(self) -> dict[str, ActorConfig]:
        """Its models, by role, whether they are asked or not."""
        return {"student": self.student, "teacher": self.teacher, "judge": self.verification.judge}

    def served_by(self, servers: Mapping[str, str]) -> "RunConfig":
        """The same run with other addresses of the roles in ``servers``."""
        if not servers:
            return self
        changed = {role: self.actors[role].model_copy(update={"base_url": url}) for role, url in servers.items()}
        judge = changed.pop("judge", self.verification.judge)
        verification = self.verification.model_copy(update={"judge": judge})
        return self.model_copy(update={**changed, "verification": verification})

    def to_record(self) -> tuple[dict[str, object], str]:
        """The configuration as ``RunStarted`` stores it, without ``servers``: JSON values, and the sha256 of their
        canonical text."""
        plain = self.served_by(dict.fromkeys(self.servers, "")).model_dump(mode="json")
        return plain, sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")))

    @classmethod
    def recorded(cls, plain: Mapping[str, object], servers: Mapping[str, str] = NOWHERE) -> "RunConfig":
        """Read the configuration of a run from its log, with the addresses of its ``servers``: the one place where
        settings that a later version renames are brought to its names."""
        questions = dict(cast("Mapping[str, object]", plain.get("questions") or {}))
        columns = {role: questions.pop(role) for role in ("question", "answer", "id") if role in questions}
        if columns:
            questions["columns"] = {role: name for role, name in columns.items() if name}
        training = cast("Mapping[str, object]", plain.get("training") or {})
        recipes = {name: recorded_recipe(value) for name, value in training.items()}
        return cls.model_validate({**plain, "questions": questions, "training": recipes}).served_by(servers)


class Settings(Frozen):
    """All settings of a process: the run's, and where its data, log, sandbox and models are."""

    home: Path = Field(Path(), description="data folder; AGENT0_HOME sets it")
    profile: str = Field("", description="name of the profile in use")
    plugins: tuple[Path, ...] = Field(
        (), description="Python files with rewards, verifiers, tools or families of yours"
    )
    run: RunConfig = RunConfig()
    nats: NatsSettings = NatsSettings()
    handlers: HandlerSettings = HandlerSettings()
    sandbox: SandboxSettings = SandboxSettings()
    web: WebSettings = WebSettings()
    mcp: McpSettings = McpSettings()
    models: ModelSettings = ModelSettings()
    artifacts: ArtifactSettings = ArtifactSettings()
    benchmarks: BenchmarkSettings = BenchmarkSettings()
    router: RouterSettings = RouterSettings()
    api: ApiSettings = ApiSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    _typed: frozenset[str] = PrivateAttr(frozenset())
    _own: frozenset[str] = PrivateAttr(frozenset())
    _profile_file: str = PrivateAttr("")

    def __eq__(self, other: object) -> bool:
        """Whether all settings are equal, wherever they came from."""
        return isinstance(other, Settings) and self.model_dump() == other.model_dump()

    @property
    def recorded_run(self) -> RunConfig:
        """The run as its start records it: with the address of each role's Ollama, so that who resumes it asks the
        same server. One with a password in it stays out."""
        addressed = self.models.addressed
        return self.run.model_copy(
            update={"student": addressed(self.run.student), "teacher": addressed(self.run.teacher)}
        )

    @property
    def profile_source(self) -> str:
        """What the profile in use is loaded by: the path of its file, or its name."""
        return self._profile_file or self.profile

    @property
    def typed(self) -> frozenset[str]:
        """Dotted keys of what a person set for this very command, by a flag or in a request."""
        return self._typed

    @property
    def own(self) -> frozenset[str]:
        """Dotted keys of what a person set anywhere: all but what a packaged profile or a default says."""
        return self._own
