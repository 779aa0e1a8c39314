"""Settings of rewards: set, weights, calibrator."""

from typing import Literal

from pydantic import Field

from agent0.settings.base import Frozen


class CalibratorConfig(Frozen):
    """The calibrator that maps an attempt's confidence signals to one probability; `agent0 reward
    calibrator` prints one."""

    signal: str = Field("", description="signals of agent0.rollout.confidence.signals with + between them; empty: none")
    method: Literal["temperature", "platt", "isotonic", "logistic"] = Field(
        "logistic", description="of agent0 calibrate"
    )
    parameters: tuple[float, ...] = Field((), description="as CalibratorFitted has them")
    version: str = Field("", max_length=300, description="which one it is; decisions that rest on it name it")


class GainConfig(Frozen):
    """How the student's gain from an iteration's tasks is measured: by short trainings from its present checkpoint,
    each on a part of the accepted answers, scored on training-split tasks that it does not solve, and thrown away."""

    subsets: int = Field(
        0, ge=0, le=64, description="parts that an iteration's solved tasks are split into; 0: nothing is measured"
    )
    split: Literal["level", "chance"] = Field(
        "level", description="what a part has in common: neighbouring levels, or nothing"
    )
    steps: int = Field(8, ge=1, le=1_000_000, description="steps of each short training")
    probe: int = Field(128, ge=1, le=10_000, description="unsolved tasks just beyond the student's frontier, at most")


class RewardConfig(Frozen):
    """The reward set of a run, its weights, and how totals are normalised."""

    set: str = Field("agent0", description="registered reward set; agent0 reward list names them")
    weights: dict[str, float] = Field(default_factory=dict, description="part -> weight; others keep their default")
    normalize: bool = Field(
        False, description="totals less the mean, by the deviation, of the role's receipts of earlier iterations"
    )
    clip: float = Field(0.0, ge=0, description="totals are kept within plus and minus this; 0: they are not")
    calibrator: CalibratorConfig = CalibratorConfig()
    gain: GainConfig = GainConfig()
