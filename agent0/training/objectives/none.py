"""No objective: nothing is learned from sampled trajectories, only from what is replayed or taught."""

from collections import Counter
from collections.abc import Sequence

from agent0.settings import RecipeConfig
from agent0.training.objectives import Objective, WeightedSample, objective, sft
from agent0.training.scored_trajectory import ScoredTrajectory


def weigh(
    groups: Sequence[Sequence[ScoredTrajectory]], recipe: RecipeConfig, skipped: Counter[str]
) -> list[WeightedSample]:
    """Weigh nothing: returns no samples, and counts the trajectories as ``no_objective``."""
    skipped["no_objective"] += sum(map(len, groups))
    return []


NONE = objective(Objective("none", weigh, sft.loss, contrast=False, tempered=False, penalty=False))
