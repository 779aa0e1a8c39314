"""Advantage-weighted regression: likelihood of what was written, weighted by how much better than its group it did
(Peng et al. 2019, arXiv 1910.00177, eq. 9 and algorithm 1).

The weights are exp(A / beta) of the group's normalised advantage, at most ``MOST``, the paper's bound; divided by their
mean over all samples, so that neither ``beta`` nor a lucky group changes the size of a step. It needs no
log-probability of whoever wrote, so earlier checkpoints' trajectories are used as well (``window``), each weighed
inside its own group.
"""

from collections import Counter
from collections.abc import Sequence
from math import exp, log
from statistics import fmean

from agent0.ports.training import Sample
from agent0.settings import RecipeConfig
from agent0.training.objectives import Objective, WeightedSample, clips, objective, sft
from agent0.training.objectives.advantages import group_advantages, trajectory_of, with_contrast
from agent0.training.scored_trajectory import ScoredTrajectory

MOST = 20.0
"""The greatest weight before the division by the mean."""


def weigh(
    groups: Sequence[Sequence[ScoredTrajectory]], recipe: RecipeConfig, skipped: Counter[str]
) -> list[WeightedSample]:
    """Weigh each trajectory by min(MOST, exp(A / beta)) over the mean of these, A its advantage inside its group."""
    advantages = [
        (scored, advantage)
        for members in with_contrast(groups, skipped)
        for scored, advantage in zip(members, group_advantages(members, divided=True), strict=True)
    ]
    raw = [exp(min(log(MOST), advantage / recipe.beta)) for _, advantage in advantages]
    mean = fmean(raw) if raw else 1.0
    return [
        WeightedSample(scored, Sample(trajectory_of(scored), advantage, clips(recipe)[1], weight / mean))
        for (scored, advantage), weight in zip(advantages, raw, strict=True)
    ]


AWR = objective(Objective("awr", weigh, sft.loss, tempered=False, penalty=False, likelihood=True, off_policy=True))
