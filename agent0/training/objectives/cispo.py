"""CISPO: the importance weight is clipped, no token is: each keeps its gradient (arXiv 2506.13585, section 3.1).

loss = - 1/tokens sum_i sum_t min(r_it, 1 + high) A_i new_it,  r_it = exp(new_it - behaviour_it) held fixed

That is equations 4 and 5 without a lower bound, which the paper does not use either. It leaves the upper one open;
1 + 4 is ScaleRL's (arXiv 2510.13786), which TRL recommends (its ``epsilon_high`` of 5 is the bound itself). Advantage,
length and KL are GRPO's (``agent0.training.objectives.grpo``).
"""

from agent0.training.objectives import Loss, LossSettings, MinibatchRows, Objective, grpo, objective
from agent0.training.objectives.policy_gradient import weighted_likelihood


def loss(rows: MinibatchRows, recipe: LossSettings) -> Loss:
    """Log-likelihood of each token weighted by the advantage and by its own importance ratio, bounded above."""
    return weighted_likelihood(rows, ratio="token")


CISPO = objective(Objective("cispo", grpo.weigh, loss, clip=(0.2, 4.0), ratio=True))
