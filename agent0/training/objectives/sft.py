"""Expert iteration (rejection sampling): likelihood of verified successes, and of nothing else (arXiv 1705.08439,
2308.08998)."""

from collections import Counter
from collections.abc import Sequence

from agent0.ports.training import Sample
from agent0.settings import RecipeConfig
from agent0.training.objectives import Loss, LossSettings, MinibatchRows, Objective, WeightedSample, clips, objective
from agent0.training.objectives.advantages import trajectory_of
from agent0.training.objectives.policy_gradient import likelihood
from agent0.training.scored_trajectory import ScoredTrajectory


def weigh(
    groups: Sequence[Sequence[ScoredTrajectory]], recipe: RecipeConfig, skipped: Counter[str]
) -> list[WeightedSample]:
    """Weigh successes alike, of each task as many as the recipe takes (``fresh_per_task``; 0: all); those beyond are
    counted as ``further``, failures as ``not_verified``."""
    chosen = []
    for members in groups:
        right = [scored for scored in members if scored.success]
        taken = right[: recipe.fresh_per_task or None]
        chosen += [WeightedSample(scored, Sample(trajectory_of(scored), 1.0, clips(recipe)[1])) for scored in taken]
        if len(taken) < len(right):
            skipped["further"] += len(right) - len(taken)
        if len(right) < len(members):
            skipped["not_verified"] += len(members) - len(right)
    return chosen


def loss(rows: MinibatchRows, recipe: LossSettings) -> Loss:
    """Negative log-likelihood of the policy's own tokens, summed over them."""
    return Loss(likelihood(rows.logprobs, rows.mask, rows.weight))


SFT = objective(
    Objective("sft", weigh, loss, roles=("student",), contrast=False, tempered=False, penalty=False, likelihood=True)
)
