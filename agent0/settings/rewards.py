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


class RewardConfig(Frozen):
    """The reward set of a run, its weights, and how totals are normalised."""

    set: str = Field("agent0", description="registered reward set; agent0 reward list names them")
    weights: dict[str, float] = Field(default_factory=dict, description="part -> weight; others keep their default")
    normalize: bool = Field(
        False, description="totals less the mean, by the deviation, of the role's receipts of earlier iterations"
    )
    clip: float = Field(0.0, ge=0, description="totals are kept within plus and minus this; 0: they are not")
    edition: int = Field(
        3, ge=1, le=3, description="version of the rules; 1 and 2: as earlier versions rewarded; see docs/rewards.md"
    )
    calibrator: CalibratorConfig = CalibratorConfig()
