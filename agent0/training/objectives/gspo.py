"""GSPO: the importance ratio of a whole reply, its tokens' geometric mean, clipped as one (arXiv 2507.18071).

loss = - 1/n sum_i min(s_i A_i, clip(s_i, 1 - low, 1 + high) A_i),  s_i = exp(mean_t (new_it - behaviour_it))

That is equation 5 with the ratio of equation 7, each reply counting alike, however long (TRL's ``loss_type="grpo"``
with ``importance_sampling_level="sequence"``). Clips: 0.0003 below and 0.0004 above, the paper's (section 5.1), since a
mean over tokens moves little. Of an attempt with several turns the ratio is one, over all tokens of its own. Advantage
and KL are GRPO's (``agent0.training.objectives.grpo``), KL averaged over each reply.
"""

from agent0.training.objectives import Loss, LossSettings, MinibatchRows, Objective, grpo, objective
from agent0.training.objectives.policy_gradient import clipped_surrogate


def loss(rows: MinibatchRows, recipe: LossSettings) -> Loss:
    """The clipped surrogate loss with one ratio for all tokens of a row."""
    return clipped_surrogate(rows, clip_low=recipe.clip_low, ratio="mean")


GSPO = objective(Objective("gspo", grpo.weigh, loss, per="attempt", clip=(3e-4, 4e-4), ratio=True))
