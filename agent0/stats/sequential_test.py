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
    return _e_value(gained, lost, 0.5)


def _e_value(successes: int, others: int, share: float) -> float:
    """Against the hypothesis that ``share``, between 0 and 1, of all are found."""
    log_mixture = math.lgamma(successes + 0.5) + math.lgamma(others + 0.5) - math.lgamma(successes + others + 1)
    log_fixed = successes * math.log(share) + others * math.log1p(-share)
    return math.exp(min(700.0, log_mixture - math.log(math.pi) - log_fixed))


def winner(gained: int, lost: int) -> str:
    """Name the better model: ``second`` where gains are proven, ``first`` where losses are, empty where
    neither is yet."""
    if e_value(gained, lost) < ENOUGH:
        return ""
    return "second" if gained > lost else "first"


def always_valid_interval(gained: int, lost: int, items: int) -> tuple[float, float]:
    """Interval of the mean difference that holds with 95 % however often one looks, and excludes 0 where, and only
    where, ``winner`` names one.

    The test turned round (a confidence sequence: Ramdas et al. 2023, section 4): all shares of gains among the changes
    whose e-value is below ``ENOUGH``, given how many of the ``items`` changed. Where nothing changed it is bounded by
    what might have changed unseen.
    """
    changed = gained + lost
    if not changed:
        unseen = _shares(0, items)[1]
        return -unseen, unseen
    low, high = _shares(gained, lost)
    return changed / items * (2 * low - 1), changed / items * (2 * high - 1)


def _shares(successes: int, others: int) -> tuple[float, float]:
    """The least and the greatest share whose e-value is below ``ENOUGH``: it is least at the share observed."""
    most_likely = successes / (successes + others)
    low = _edge(successes, others, most_likely, 0.0) if successes else 0.0
    high = _edge(successes, others, most_likely, 1.0) if others else 1.0
    return low, high


def _edge(successes: int, others: int, inside: float, outside: float) -> float:
    """Where the e-value reaches ``ENOUGH`` on the way from a share ``inside`` the interval to one ``outside``."""
    for _ in range(60):
        middle = (inside + outside) / 2
        kept = 0 < middle < 1 and _e_value(successes, others, middle) < ENOUGH
        inside, outside = (middle, outside) if kept else (inside, middle)
    return inside
