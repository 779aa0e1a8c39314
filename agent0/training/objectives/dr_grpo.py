"""Dr. GRPO: GRPO without what favours easy and hard tasks and long wrong answers (arXiv 2503.20783, section 3.2).

Advantage: reward less the mean of the group, divided by no deviation (TRL's ``scale_rewards="none"``, verl's
``norm_adv_by_std_in_grpo=False``). Length: the sum over tokens is divided by attempts times a constant, so that a token
counts the same in each attempt of each step; the paper's is the budget of tokens, here ``run.<role>.max_tokens`` (TRL's
``dr_grpo`` has ``max_completion_length``). The rest is GRPO's (``agent0.training.objectives.grpo``).
"""

from collections import Counter
from collections.abc import Sequence

from agent0.settings import RecipeConfig
from agent0.training.objectives import Objective, WeightedSample, grpo, objective
from agent0.training.scored_trajectory import ScoredTrajectory


def weigh(
    groups: Sequence[Sequence[ScoredTrajectory]], recipe: RecipeConfig, skipped: Counter[str]
) -> list[WeightedSample]:
    """Weigh each trajectory by its reward less the mean of its group."""
    return grpo.relative(groups, recipe, skipped, divided=False)


DR_GRPO = objective(Objective("dr_grpo", weigh, grpo.loss, per="budget", ratio=True))
