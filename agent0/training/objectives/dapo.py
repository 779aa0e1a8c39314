"""DAPO: GRPO with a higher upper clip and a loss by tokens, which learns nothing from replies that were cut off (arXiv
2503.14476).

Clip-higher (section 3.1): 0.2 below and 0.28 above, unless settings say otherwise. Loss (section 3.3, equation 12): a
step's sum divided by its tokens, which ``grpo`` does here, too (TRL's ``dapo``). Overlong filtering (section 3.4): a
reply that met the limit of tokens without an answer is compared with its group and then left out (TRL's
``mask_truncated_completions``); its tokens do not count in the divisor. The soft punishment of the same section
(equation 13) is a reward, ``overlong``. Dynamic sampling (section 3.2): groups of equal rewards are left out, and
``run.refill`` asks for tasks in their place. The paper has no KL; ``kl`` is 0 unless it is set.
"""

from collections import Counter
from collections.abc import Sequence

from agent0.settings import RecipeConfig
from agent0.training.objectives import Objective, WeightedSample, grpo, objective
from agent0.training.scored_trajectory import ScoredTrajectory


def weigh(
    groups: Sequence[Sequence[ScoredTrajectory]], recipe: RecipeConfig, skipped: Counter[str]
) -> list[WeightedSample]:
    """Weigh each trajectory by GRPO's advantage; those that were cut off are counted as ``overlong``."""
    weighted = grpo.weigh(groups, recipe, skipped)
    whole = [sample for sample in weighted if not sample.scored.cut_off]
    if overlong := len(weighted) - len(whole):
        skipped["overlong"] += overlong
    return whole


DAPO = objective(Objective("dapo", weigh, grpo.loss, clip=(0.2, 0.28), ratio=True))
