"""No objective: nothing is learned from sampled trajectories, only from what is replayed or taught."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from agent0.settings import RecipeConfig
from agent0.training.objectives import Loss, MinibatchRows, Objective, WeightedSample, objective
from agent0.training.objectives.policy_gradient import likelihood
from agent0.training.scored_trajectory import ScoredTrajectory


def weigh(
    groups: Sequence[Sequence[ScoredTrajectory]], recipe: RecipeConfig, skipped: Counter[str]
) -> list[WeightedSample]:
    """Weigh nothing: returns no samples, and counts the trajectories as ``no_objective``."""
    skipped["no_objective"] += sum(map(len, groups))
    return []


def loss(rows: MinibatchRows, recipe: Mapping[str, Any]) -> Loss:
    """Negative log-likelihood of the masked tokens, used for replayed successes."""
    return Loss(likelihood(rows.logprobs, rows.mask, rows.weight))


NONE = objective(Objective("none", weigh, loss, contrast=False, tempered=False, penalty=False))
