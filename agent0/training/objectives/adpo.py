"""ADPO: GRPO that trusts tasks less, and lets rare tokens of theirs grow more, the less often they are solved
(arXiv 2511.16043, section 3.3). The paper leaves the slopes open: 0.3, 0.8 and 0.6 are those of the released recipe;
its ``max_epsilon_bonus`` is 0.1, where ``clip_bonus`` is 0.16 unless it is set.

Deviation, length and KL are GRPO's (``agent0.training.objectives.grpo``): the population's, by tokens of a step, k3
against
the parent. Neither TRL nor verl has ADPO; the released recipe builds on verl's GRPO, with the sample's deviation.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from agent0.settings import RecipeConfig
from agent0.training.objectives import Objective, Weighed, grpo, objective
from agent0.training.scored_trajectory import Deed


def ambiguity_scale(rate: float) -> float:
    """The advantage's scale s(p): 0.6 at p <= 0.3 rising to 1 at p >= 0.8."""
    return 0.6 + 0.4 * min(1.0, max(0.0, (rate - 0.3) / 0.5))


def clip_high(rate: float, recipe: RecipeConfig) -> float:
    """The upper clip: the whole bonus wider at p <= 0.3, falling to none at p >= 0.8."""
    return recipe.clip_high + recipe.clip_bonus * min(1.0, max(0.0, (0.8 - rate) / 0.5))


def weigh(groups: Sequence[Sequence[Deed]], recipe: RecipeConfig, skipped: Counter[str]) -> list[Weighed]:
    """GRPO's advantages times s(p), each with its own upper clip. Where there is no solve rate (a teacher's proposals)
    nothing is ambiguous."""
    chosen = []
    for one in grpo.weigh(groups, recipe, skipped):
        rate = 1.0 if one.deed.solve_rate is None else one.deed.solve_rate
        advantage = one.sample.advantage * ambiguity_scale(rate)
        sample = replace(one.sample, advantage=advantage, clip_high=clip_high(rate, recipe))
        chosen.append(replace(one, sample=sample))
    return chosen


ADPO = objective(Objective("adpo", weigh, grpo.loss))
