"""One frozen object of settings. ``RunConfig`` is what a run's results depend on (it is stored in ``RunStarted``);
the rest says where and how this process works. Loading order: flag > AGENT0_* > .env > profile > user > defaults."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from agent0.settings.base import LARGEST, Frozen
from agent0.settings.curriculum import CurriculumConfig
from agent0.settings.evaluation import Action, EvaluationConfig, GuardConfig, VerificationConfig
from agent0.settings.process import (
    BenchmarkSettings,
    HandlerSettings,
    McpServer,
    McpSettings,
    ModelSettings,
    NatsSettings,
    SandboxSettings,
    WebSettings,
)
from agent0.settings.rewards import CalibratorConfig, RewardConfig
from agent0.settings.roles import ActorConfig, JudgeConfig, PolicyConfig, StudentConfig
from agent0.settings.training import LATER, RecipeConfig, TrainingConfig

__all__ = [
    "LARGEST",
    "LATER",
    "Action",
    "ActorConfig",
    "BenchmarkSettings",
    "CalibratorConfig",
    "CurriculumConfig",
    "EvaluationConfig",
    "Frozen",
    "GuardConfig",
    "HandlerSettings",
    "JudgeConfig",
    "McpServer",
    "McpSettings",
    "ModelSettings",
    "NatsSettings",
    "PolicyConfig",
    "RecipeConfig",
    "RewardConfig",
    "RunConfig",
    "SandboxSettings",
    "Settings",
    "StudentConfig",
    "TrainingConfig",
    "VerificationConfig",
    "WebSettings",
]


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
        """The configuration that a log holds. One that names no edition of its rewards is older than the second, one
        that names no calibration has a gate that does not look at it; one without an edition of its verification or a
        split rule has the first, and a recipe that names no importance weighs token by token."""
        training = dict(plain.get("training", {}))
        recipes = {role: {"importance": "token"} | training.get(role, {}) for role in ("student", "teacher")}
        older = {
            "rewards": {"edition": 1},
            "verification": {"edition": 1},
            "evaluation": {"calibration": 1.0},
            "curriculum": {"split_rule": 1},
        }
        known = {name: old | plain.get(name, {}) for name, old in older.items()}
        return cls.model_validate({**plain, **known, "training": training | recipes})


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
