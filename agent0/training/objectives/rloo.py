"""RLOO: REINFORCE with the mean of the others of its group as each trajectory's baseline (arXiv 2402.14740).

No deviation divides: the advantages are those of TRL's ``RLOOTrainer`` and verl's ``compute_rloo_outcome_advantage``.
An attempt is one action, so off policy its weight is the ratio of whole attempts, cut off above 1 + ``clip_high``; TRL
clips the same ratio on both sides, verl clips token by token. Length: a step's sum is divided by its tokens, TRL's by
its attempts (a constant factor of a step, never one of an attempt). KL: k3 against the parent, in the loss; TRL takes
k1 off the reward, against the model before training.
"""

from collections import Counter
from collections.abc import Sequence

from agent0.ports.training import Sample
from agent0.settings import RecipeConfig
from agent0.training.objectives import Loss, LossSettings, MinibatchRows, Objective, WeightedSample, clips, objective
from agent0.training.objectives.advantages import group_advantages, trajectory_of, with_contrast
from agent0.training.objectives.policy_gradient import weighted_likelihood
from agent0.training.scored_trajectory import ScoredTrajectory


def weigh(
    groups: Sequence[Sequence[ScoredTrajectory]], recipe: RecipeConfig, skipped: Counter[str]
) -> list[WeightedSample]:
    """Weigh each trajectory by reward - mean of the others = n / (n - 1) (reward - group mean)."""
    chosen = []
    for members in with_contrast(groups, skipped, recipe.fresh_per_task):
        share = len(members) / (len(members) - 1)
        for scored, above in zip(members, group_advantages(members, divided=False), strict=True):
            chosen.append(WeightedSample(scored, Sample(trajectory_of(scored), share * above, clips(recipe)[1])))
    return chosen


def loss(rows: MinibatchRows, recipe: LossSettings) -> Loss:
    """Log-likelihood weighted by the advantage and, once the model has moved, by the importance ratio."""
    return weighted_likelihood(rows, ratio="attempt")


RLOO = objective(Objective("rloo", weigh, loss, ratio=True))
