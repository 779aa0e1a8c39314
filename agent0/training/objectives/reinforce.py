"""REINFORCE++ with a baseline (arXiv 2501.03262): what a deed is above the mean of its group, in units of the deviation
of the whole batch, so that a group of nearly equal rewards is not blown up.

Deviation: the population's over attempts, plus 1e-4. verl's
``compute_reinforce_plus_plus_baseline_outcome_advantage`` takes mean and sample variance (plus 1e-8, under the root)
over tokens, so that long attempts weigh more; its ``compute_reinforce_plus_plus_outcome_advantage`` has no group's
mean. TRL's ``scale_rewards="batch"`` takes the sample's deviation of the rewards themselves. Length and KL are
GRPO's; the loss is clipped, as there.
"""

import statistics
from collections import Counter
from collections.abc import Sequence

from agent0.ports.training import Sample
from agent0.settings import RecipeConfig
from agent0.training.objectives import Objective, Weighed, grpo, objective
from agent0.training.objectives.advantages import EPSILON, relative, trajectory_of, with_contrast
from agent0.training.scored_trajectory import Deed


def weigh(groups: Sequence[Sequence[Deed]], recipe: RecipeConfig, skipped: Counter[str]) -> list[Weighed]:
    """(reward - mean of the group - mean of these) / (their deviation + 1e-4)."""
    deeds: list[Deed] = []
    above: list[float] = []
    for members in with_contrast(groups, skipped):
        deeds += members
        above += relative(members, divided=False)
    if not deeds:
        return []
    centre, by = statistics.fmean(above), statistics.pstdev(above) + EPSILON
    return [
        Weighed(deed, Sample(trajectory_of(deed), (value - centre) / by, recipe.clip_high))
        for deed, value in zip(deeds, above, strict=True)
    ]


REINFORCE = objective(Objective("reinforce", weigh, grpo.loss))
