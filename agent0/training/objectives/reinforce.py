"""REINFORCE++ with a baseline (arXiv 2501.03262): rewards above the mean of their group, in units of the deviation of
the whole batch, so that a group of nearly equal rewards is not blown up.

Deviation: the population's over attempts, plus 1e-4. verl's ``compute_reinforce_plus_plus_baseline_outcome_advantage``
takes mean and sample variance (plus 1e-8, under the root) over tokens, so that long attempts weigh more; its
``compute_reinforce_plus_plus_outcome_advantage`` has no group's mean. TRL's ``scale_rewards="batch"`` takes the
sample's deviation of the rewards themselves. Length and KL are GRPO's; the loss is clipped, as there.
"""

import statistics
from collections import Counter
from collections.abc import Sequence

from agent0.ports.training import Sample
from agent0.settings import RecipeConfig
from agent0.training.objectives import Objective, WeightedSample, clips, grpo, objective
from agent0.training.objectives.advantages import EPSILON, group_advantages, trajectory_of, with_contrast
from agent0.training.scored_trajectory import ScoredTrajectory


def weigh(
    groups: Sequence[Sequence[ScoredTrajectory]], recipe: RecipeConfig, skipped: Counter[str]
) -> list[WeightedSample]:
    """Weigh each trajectory by (reward - group mean - batch mean of these) / (batch deviation of these + 1e-4)."""
    trajectories: list[ScoredTrajectory] = []
    above: list[float] = []
    for members in with_contrast(groups, skipped, recipe.fresh_per_task):
        trajectories += members
        above += group_advantages(members, divided=False)
    if not trajectories:
        return []
    centre, by = statistics.fmean(above), statistics.pstdev(above) + EPSILON
    return [
        WeightedSample(scored, Sample(trajectory_of(scored), (value - centre) / by, clips(recipe)[1]))
        for scored, value in zip(trajectories, above, strict=True)
    ]


REINFORCE = objective(Objective("reinforce", weigh, grpo.loss, ratio=True))
