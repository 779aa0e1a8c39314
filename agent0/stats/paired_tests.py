"""Paired tests of two evaluations on the same items, with intervals and the smallest detectable difference.

Every statement "improved" of this program comes from ``claimed``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean

LEVEL = 0.05
"""Two-sided level of every test here."""
IMPROVED, FELL, UNSHOWN = "improved", "fell", "no difference shown"
"""The verdicts on a difference (``claimed``)."""
_CELLS = 1 << 21
"""Random numbers drawn at once."""
_TOGETHER = 20
"""Values that must share one place, on average, before drawing counts is cheaper than drawing items."""


@dataclass(frozen=True)
class Difference:
    """``after - before`` in mean score per item, with its 95 % interval and the exact test's two-sided p.

    ``items`` counts clusters; ``gained`` and ``lost`` count those whose outcome changed; ``detectable`` is the smallest
    true difference that this many items with this share of changes would show with a power of 80 % at the 5 % level.
    """

    mean: float
    lower95: float
    upper95: float
    p: float
    items: int
    gained: int
    lost: int
    detectable: float
    size: float = 1.0
    """Mean size of those changes that are any."""

    def claimed(self, adjusted: float) -> str:
        """The verdict on this difference, ``adjusted`` being its p after correction for multiple tests."""
        return claimed(adjusted, self.gained - self.lost, self.lower95, self.upper95)

    @property
    def improved(self) -> bool:
        """Whether this difference alone, without correction, counts as an improvement."""
        return self.claimed(self.p) == IMPROVED

    @property
    def worsened(self) -> bool:
        """Whether the paired test proves a loss, as the promotion gate asks; the verdict "fell" needs the interval as
        well."""
        return self.p < LEVEL and self.lost > self.gained and self.mean < 0


def claimed(p: float, leaning: float, low: float, high: float) -> str:
    """The verdict on a difference: ``IMPROVED`` or ``FELL`` where test and 95 % interval agree on the direction, else
    ``UNSHOWN``.

    ``p`` is two-sided and corrected for all claims made together; ``leaning`` has the sign of items gained minus items
    lost; ``low`` and ``high`` bound the mean.
    """
    if p >= LEVEL:
        return UNSHOWN
    if leaning > 0 and low > 0:
        return IMPROVED
    return FELL if leaning < 0 and high < 0 else UNSHOWN


def mcnemar(gained: int, lost: int) -> float:
    """Exact two-sided p of McNemar's test (McNemar 1947), a sign test on the items whose outcome changed."""
    changed, fewer = gained + lost, min(gained, lost)
    chance = math.lgamma(changed + 1) - math.lgamma(fewer + 1) - math.lgamma(changed - fewer + 1)
    total, term = 1.0, 1.0
    for k in range(fewer, 0, -1):  # chances of fewer changes, each as a multiple of the greatest
        term *= k / (changed - k + 1)
        total += term
        if term < 1e-17 * total:
            break
    return min(1.0, 2 * math.exp(chance - changed * math.log(2)) * total)


def exact_interval(gained: int, lost: int, items: int, level: float = LEVEL, size: float = 1.0) -> tuple[float, float]:
    """Interval of a mean difference that excludes 0 where, and only where, ``mcnemar`` gives p < ``level``.

    McNemar's test turned round: Clopper and Pearson's bounds (1934) of the share of changes that are gains, given how
    many of the ``items`` changed. ``size`` is the mean size of a change. Where nothing changed it is bounded by what
    might have changed unseen.
    """
    changed = gained + lost
    if not changed:
        unseen = 1 - (level / 2) ** (1 / items)
        return -unseen * size, unseen * size
    low, high = _clopper_pearson(gained, changed, level)
    scale = size * changed / items
    return scale * (2 * low - 1), scale * (2 * high - 1)


def agreeing_level(p: float, adjusted: float, level: float = LEVEL) -> float:
    """The level of an interval that excludes 0 where, and only where, ``p`` is significant at ``level`` after its
    correction to ``adjusted``."""
    return level * min(1.0, p / adjusted) if p > 0 and adjusted > 0 else level


def agreeing(difference: Difference, adjusted: float, level: float = LEVEL) -> Difference:
    """``difference`` with the interval of its own test, corrected to ``adjusted`` as its p is, and widened to the
    normal one of the mean (the resampled one where items changed by parts of a point), since the first takes for known
    how many items change. A verdict never stands beside an interval that says otherwise: where p is not significant the
    first holds 0, and so does the wider."""
    level = agreeing_level(difference.p, adjusted, level)
    low, high = exact_interval(difference.gained, difference.lost, difference.items, level, difference.size)
    if difference.size == 1:
        spread = max((difference.gained + difference.lost) / difference.items - difference.mean**2, 0.0)
        half = NormalDist().inv_cdf(1 - level / 2) * math.sqrt(spread / difference.items)
        around = max(-1.0, difference.mean - half), min(1.0, difference.mean + half)
    else:
        around = difference.lower95, difference.upper95
    return replace(difference, lower95=min(low, around[0]), upper95=max(high, around[1]))


def _clopper_pearson(successes: int, n: int, level: float) -> tuple[float, float]:
    low = _where(lambda share: binomial_at_most(n - successes, n, 1 - share) < level / 2) if successes else 0.0
    high = 1 - _where(lambda share: binomial_at_most(successes, n, 1 - share) < level / 2) if successes < n else 1.0
    return low, high


def _where(below: Callable[[float], bool]) -> float:
    """The share in [0, 1] at which ``below`` turns from true to false."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low


def binomial_at_most(k: int, n: int, share: float) -> float:
    """Chance of at most ``k`` among ``n`` with chance ``share`` each; what is too small to count is left out."""
    if not 0 < share < 1:
        return float(share <= 0 or k >= n)
    odds, total, term = (1 - share) / share, 1.0, 1.0
    for count in range(k, 0, -1):
        term *= odds * count / (n - count + 1)
        total += term
        if term < 1e-17 * total:
            break
    logs = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return min(1.0, total * math.exp(logs + k * math.log(share) + (n - k) * math.log1p(-share)))


def compare(
    before: Sequence[float],
    after: Sequence[float],
    *,
    clusters: Sequence[str] | None = None,
    rounds: int = 2000,
    seed: int = 0,
) -> Difference:
    """Compare scores of the same items in the same order; several samples of an item share a cluster.

    ``rounds`` 0 leaves the interval to ``agreeing``, which needs none for whole outcomes.

    Scores are shares in [0, 1]. An item or cluster counts as gained where its mean rose; each cluster counts once,
    however many samples it has.

    Raises:
        ValueError: not the same items, or none.
    """
    if len(before) != len(after) or not before or (clusters is not None and len(clusters) != len(before)):
        raise ValueError(f"{len(before)} and {len(after)} scores cannot be paired")
    changes = _by_cluster(before, after, clusters)
    gained, lost = sum(c > 0 for c in changes), sum(c < 0 for c in changes)
    low, high = bootstrap(changes, rounds=rounds, seed=seed) if rounds else (fmean(changes), fmean(changes))
    share = (gained + lost) / len(changes)
    return Difference(
        mean=fmean(changes),
        lower95=low,
        upper95=high,
        p=mcnemar(gained, lost),
        items=len(changes),
        gained=gained,
        lost=lost,
        detectable=detectable(len(changes), share),
        size=sum(map(abs, changes)) / (gained + lost) if gained + lost else 1.0,
    )


def _by_cluster(before: Sequence[float], after: Sequence[float], clusters: Sequence[str] | None) -> list[float]:
    names = clusters or [str(index) for index in range(len(before))]
    groups: dict[str, list[float]] = {}
    for name, old, new in zip(names, before, after, strict=True):
        groups.setdefault(name, []).append(float(new) - float(old))
    return [fmean(changes) for changes in groups.values()]


def outcomes(text: str) -> list[float]:
    """Read an evaluation's outcomes, one character per item, as scores: 1.0 for "1", 0.0 for "0" and "?"
    (undecided)."""
    return [float(mark == "1") for mark in text]


def bootstrap(
    values: Sequence[float], *, rounds: int = 2000, seed: int = 0, level: float = LEVEL
) -> tuple[float, float]:
    """Percentile interval of the mean at ``level`` (0.05: 95 %), resampling items (Efron 1979).

    Equal values are drawn together, as counts of a multinomial: the same distribution, in a fraction of the time.
    """
    import numpy as np  # noqa: PLC0415 - a tenth of a second, which commands that draw nothing need not wait for

    array = np.asarray(values, dtype=float)
    distinct, counts = np.unique(array, return_counts=True)
    size, rng = len(array), np.random.RandomState(seed)  # its stream is frozen: same seed, same interval for ever
    few = _TOGETHER * len(distinct) < size
    step = max(1, _CELLS // (len(distinct) if few else size))
    means: list[float] = []
    while len(means) < rounds:
        n = min(step, rounds - len(means))
        if few:
            means += list(rng.multinomial(size, counts / size, n) @ distinct / size)
        else:
            means += list(array[rng.randint(0, size, (n, size))].mean(axis=1))
    means.sort()
    return float(means[int(level / 2 * rounds)]), float(means[math.ceil((1 - level / 2) * rounds) - 1])


def holm(ps: Sequence[float]) -> list[float]:
    """Adjust p values for multiple tests (Holm 1979); returned in the order given."""
    order = sorted(range(len(ps)), key=lambda index: ps[index])
    out, highest = [0.0] * len(ps), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        out[index] = highest
    return out


def detectable(items: int, discordance: float, *, power: float = 0.8, level: float = LEVEL) -> float:
    """Smallest true difference that a paired test of ``items`` items detects with ``power``; 1.0 without items.

    ``discordance`` is the expected share of items whose outcome changes; at least as many change as the difference
    needs. Connor (1987), plus one item, because the exact test moves in whole items: without it the power would be 0.75
    to 0.79.
    """
    if not items:
        return 1.0
    normal = NormalDist()
    a, b = normal.inv_cdf(1 - level / 2), normal.inv_cdf(power)
    difference = 0.0
    for _ in range(100):
        share = max(discordance, difference, 1 / items)
        difference = (a * math.sqrt(share) + b * math.sqrt(max(share - difference * difference, 0.0))) / math.sqrt(
            items
        )
        difference = min(1.0, difference)
    return min(1.0, difference + 1 / items)


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Unbiased estimate of pass@k from ``samples`` samples of which ``correct`` are right (arXiv 2107.03374, section
    2.1).

    Raises:
        ValueError: fewer than ``k`` samples.
    """
    if not 0 <= correct <= samples or not 1 <= k <= samples:
        raise ValueError(f"pass@{k} of {correct} in {samples} samples")
    return 1.0 - math.comb(samples - correct, k) / math.comb(samples, k)
