"""RLOO: REINFORCE with the mean of the others of its group as each deed's baseline (arXiv 2402.14740)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from agent0.deeds import Deed
from agent0.objectives import Loss, Objective, Rows, Weighed, objective
from agent0.objectives.advantages import relative, trajectory_of, with_contrast
from agent0.objectives.policy_gradient import weighted_likelihood
from agent0.ports import Sample
from agent0.settings import RecipeConfig


def weigh(groups: Sequence[Sequence[Deed]], recipe: RecipeConfig, skipped: Counter[str]) -> list[Weighed]:
    """reward - mean of the others = n / (n - 1) (reward - mean)."""
    chosen = []
    for members in with_contrast(groups, skipped):
        share = len(members) / (len(members) - 1)
        for deed, above in zip(members, relative(members, divided=False), strict=True):
            chosen.append(Weighed(deed, Sample(trajectory_of(deed), share * above, recipe.clip_high)))
    return chosen


def loss(rows: Rows, recipe: Mapping[str, Any]) -> Loss:
    """Log-likelihood weighted by the advantage and, once the model has moved, by the importance ratio."""
    return weighted_likelihood(
        rows.logprobs, rows.behaviour, rows.mask, rows.advantage, rows.weight, clip_high=rows.clip_high
    )


RLOO = objective(Objective("rloo", weigh, loss))
