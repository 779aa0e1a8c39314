"""ADPO: GRPO with smaller advantages and wider upper clips for tasks that are solved less often (arXiv 2511.16043,
section 3.3).

The paper leaves the slopes open: 0.3, 0.8 and 0.6 are those of the released recipe; its ``max_epsilon_bonus`` is 0.1,
where ``clip_bonus`` is 0.16 unless it is set. Deviation, length and KL are GRPO's
(``agent0.training.objectives.grpo``): the population's, by tokens of a step, k3 against the parent. Neither TRL nor
verl has ADPO; the released recipe builds on verl's GRPO, with the sample's deviation.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from agent0.settings import RecipeConfig
from agent0.training.objectives import Objective, WeightedSample, clips, grpo, objective
from agent0.training.scored_trajectory import ScoredTrajectory


def ambiguity_scale(rate: float) -> float:
    """The scale s(p) of the advantage at solve rate p: 0.6 at p <= 0.3, rising linearly to 1 at p >= 0.8."""
    return 0.6 + 0.4 * min(1.0, max(0.0, (rate - 0.3) / 0.5))


def clip_high(rate: float, recipe: RecipeConfig) -> float:
    """The upper clip at a solve rate: wider by the whole bonus at p <= 0.3, by none at p >= 0.8, linear between."""
    return clips(recipe)[1] + recipe.clip_bonus * min(1.0, max(0.0, (0.8 - rate) / 0.5))


def weigh(
    groups: Sequence[Sequence[ScoredTrajectory]], recipe: RecipeConfig, skipped: Counter[str]
) -> list[WeightedSample]:
    """Weigh trajectories by GRPO's advantages times s(p), each with its own upper clip.

    Where there is no solve rate (a teacher's proposals) p is 1: nothing is scaled.
    """
    chosen = []
    for weighted in grpo.weigh(groups, recipe, skipped):
        rate = 1.0 if weighted.scored.solve_rate is None else weighted.scored.solve_rate
        advantage = weighted.sample.advantage * ambiguity_scale(rate)
        sample = replace(weighted.sample, advantage=advantage, clip_high=clip_high(rate, recipe))
        chosen.append(replace(weighted, sample=sample))
    return chosen


ADPO = objective(Objective("adpo", weigh, grpo.loss, ratio=True))
