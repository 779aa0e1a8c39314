"""GRPO: each trajectory against the mean of its group, in units of the group's deviation (arXiv 2402.03300).

Deviation: the population's, plus 1e-4; TRL's and verl's are the sample's (plus 1e-4 and 1e-6), so advantages here are
sqrt(n / (n - 1)) of theirs (``dr_grpo`` divides by none). Length: a step's sum is divided by its tokens (TRL's
``bnpo``, and ``dapo`` within one step; verl's ``token-mean``), not attempt by attempt as in the paper (TRL's ``grpo``,
verl's ``seq-mean-token-mean``). Groups of equal rewards are left out; elsewhere their tokens still count in the
divisor. KL: k3 in the loss, as in both, but against the parent checkpoint unless ``kl_to`` is ``base``; theirs is
against the model before training. verl bounds the loss of negative advantages at a ratio of 3, too.
"""

from collections import Counter
from collections.abc import Sequence

from agent0.ports.training import Sample
from agent0.settings import RecipeConfig
from agent0.training.objectives import Loss, LossSettings, MinibatchRows, Objective, WeightedSample, clips, objective
from agent0.training.objectives.advantages import group_advantages, trajectory_of, with_contrast
from agent0.training.objectives.policy_gradient import clipped_surrogate
from agent0.training.scored_trajectory import ScoredTrajectory


def weigh(
    groups: Sequence[Sequence[ScoredTrajectory]], recipe: RecipeConfig, skipped: Counter[str]
) -> list[WeightedSample]:
    """Weigh each trajectory by its advantage inside its group, in units of the group's deviation."""
    return relative(groups, recipe, skipped, divided=True)


def relative(
    groups: Sequence[Sequence[ScoredTrajectory]], recipe: RecipeConfig, skipped: Counter[str], *, divided: bool
) -> list[WeightedSample]:
    """Weigh each trajectory by its advantage inside its group (``group_advantages``); the upper clip is the same for
    all."""
    high = clips(recipe)[1]
    return [
        WeightedSample(scored, Sample(trajectory_of(scored), advantage, high))
        for members in with_contrast(groups, skipped, recipe.fresh_per_task)
        for scored, advantage in zip(members, group_advantages(members, divided=divided), strict=True)
    ]


def loss(rows: MinibatchRows, recipe: LossSettings) -> Loss:
    """The clipped surrogate loss of PPO, token by token (``policy_gradient.clipped_surrogate``)."""
    return clipped_surrogate(rows, clip_low=recipe.clip_low)


GRPO = objective(Objective("grpo", weigh, loss, ratio=True))
