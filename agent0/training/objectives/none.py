"""No objective of its own: nothing is learned from trajectories as they stand, only from what is replayed or taught."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from agent0.settings import RecipeConfig
from agent0.training.objectives import Loss, Objective, Rows, Weighed, objective
from agent0.training.objectives.policy_gradient import likelihood
from agent0.training.scored_trajectory import Deed


def weigh(groups: Sequence[Sequence[Deed]], recipe: RecipeConfig, skipped: Counter[str]) -> list[Weighed]:
    """Nothing; how much there was is counted."""
    skipped["no_objective"] += sum(map(len, groups))
    return []


def loss(rows: Rows, recipe: Mapping[str, Any]) -> Loss:
    """Negative log-likelihood, for what is replayed."""
    return Loss(likelihood(rows.logprobs, rows.mask, rows.weight))


NONE = objective(Objective("none", weigh, loss, contrast=False, tempered=False, penalty=False))
