"""GRPO: each trajectory against the mean of its group, in units of the group's deviation (arXiv 2402.03300).

Deviation: the population's, plus 1e-4; TRL's and verl's are the sample's (plus 1e-4 and 1e-6), so advantages here are
sqrt(n / (n - 1)) of theirs. ``advantage = "centered"`` divides by none, as TRL's ``scale_rewards="none"`` and verl's
``norm_adv_by_std_in_grpo=False``. Length: a step's sum is divided by its tokens (TRL's ``bnpo``, and ``dapo`` within
one step; verl's ``token-mean``), not attempt by attempt as in the paper (TRL's ``grpo``, verl's
``seq-mean-token-mean``). Groups of equal rewards are left out; elsewhere their tokens still count in the divisor. KL:
k3 in the loss, as in both, but against the parent checkpoint; theirs is against the model before training. verl bounds
the loss of negative advantages at a ratio of 3, too.
"""

from collections import Counter
from collections.abc import Sequence

from agent0.ports.training import Sample
from agent0.settings import RecipeConfig
from agent0.training.objectives import Loss, LossSettings, MinibatchRows, Objective, WeightedSample, objective
from agent0.training.objectives.advantages import group_advantages, trajectory_of, with_contrast
from agent0.training.objectives.policy_gradient import clipped_surrogate
from agent0.training.scored_trajectory import ScoredTrajectory


def weigh(
    groups: Sequence[Sequence[ScoredTrajectory]], recipe: RecipeConfig, skipped: Counter[str]
) -> list[WeightedSample]:
    """Weigh each trajectory by its advantage inside its group; the upper clip is the recipe's for all."""
    chosen = []
    for members in with_contrast(groups, skipped, recipe.fresh_per_task):
        worth = group_advantages(members, divided=recipe.advantage == "group")
        for scored, advantage in zip(members, worth, strict=True):
            chosen.append(WeightedSample(scored, Sample(trajectory_of(scored), advantage, recipe.clip_high)))
    return chosen


def loss(rows: MinibatchRows, recipe: LossSettings) -> Loss:
    """The clipped surrogate loss of PPO, token by token (``policy_gradient.clipped_surrogate``)."""
    return clipped_surrogate(
        rows.logprobs,
        rows.behaviour,
        rows.mask,
        rows.advantage,
        rows.weight,
        clip_low=recipe.clip_low,
        clip_high=rows.clip_high,
    )


GRPO = objective(Objective("grpo", weigh, loss, ratio=True))
