"""A sequential test of two models on the same tasks, valid however often it is looked at."""

import math

ENOUGH = 20.0
"""The e-value from which two models differ significantly at the 5 % level (1 / 0.05)."""


def e_value(gained: int, lost: int) -> float:
    """The e-value against the hypothesis that a changed task is as likely gained as lost.

    The likelihood of the changes under a share drawn from Beta(1/2, 1/2), over that under a half: Robbins' mixture
    (1970), a test martingale, so by Ville's inequality P(it ever reaches 1/a) <= a (Ramdas et al. 2023,
    arXiv:2210.01948, section 3). 1 where nothing changed.

    Raises:
        ValueError: a negative count.
    """
    if gained < 0 or lost < 0:
        raise ValueError(f"{gained} and {lost} are no counts")
    changed = gained + lost
    log_mixture = math.lgamma(gained + 0.5) + math.lgamma(lost + 0.5) - math.lgamma(changed + 1) - math.log(math.pi)
    return math.exp(min(700.0, log_mixture + changed * math.log(2)))


def winner(gained: int, lost: int) -> str:
    """Name the better model: ``second`` where gains are proven, ``first`` where losses are, empty where
    neither is yet."""
    if e_value(gained, lost) < ENOUGH:
        return ""
    return "second" if gained > lost else "first"
