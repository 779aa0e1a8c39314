"""DPO: of two attempts at one task the right one is preferred to the wrong one (arXiv 2305.18290, equation 7)."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent0.ports.training import Sample
from agent0.settings import RecipeConfig
from agent0.training.objectives import Loss, LossSettings, MinibatchRows, Objective, WeightedSample, clips, objective
from agent0.training.objectives.advantages import trajectory_of
from agent0.training.scored_trajectory import ScoredTrajectory

if TYPE_CHECKING:
    from torch import Tensor


def weigh(
    groups: Sequence[Sequence[ScoredTrajectory]], recipe: RecipeConfig, skipped: Counter[str]
) -> list[WeightedSample]:
    """Pair right with wrong attempts of a task in order; attempts without a partner are counted."""
    chosen = []
    for members in groups:
        right, wrong = ([scored for scored in members if scored.success is outcome] for outcome in (True, False))
        pairs = list(zip(right, wrong, strict=False))
        chosen += [
            WeightedSample(
                better, Sample(trajectory_of(better), 1.0, clips(recipe)[1], over=trajectory_of(worse)), worse
            )
            for better, worse in pairs
        ]
        if left := len(members) - 2 * len(pairs):
            skipped["no_contrast" if not pairs else "unpaired"] += left
    return chosen


def loss(rows: MinibatchRows, recipe: LossSettings) -> Loss:
    """The DPO loss: - sum_i weight_i log sigmoid(beta ((log p - log q)(better_i) - (log p - log q)(worse_i))), q the
    parent."""
    import torch

    assert rows.over is not None  # noqa: S101 - every sample of this objective is a pair
    margin = recipe.beta * (_above_parent(rows) - _above_parent(rows.over))
    metrics = {"margin": margin.detach().sum(), "preferred": (margin.detach() > 0).sum()}
    return Loss(-(torch.nn.functional.logsigmoid(margin) * rows.weight).sum(), metrics)


def _above_parent(rows: MinibatchRows) -> "Tensor":
    """log p - log q of the policy's own tokens, summed: [rows]."""
    reference = rows.behaviour if rows.reference is None else rows.reference
    return (rows.logprobs - reference).masked_fill(~rows.mask.bool(), 0.0).sum(-1)


DPO = objective(
    Objective("dpo", weigh, loss, roles=("student",), per="row", tempered=False, reference=True, penalty=False)
)
