"""Did it get better? Paired tests on the same items. Who claims an improvement needs one, and says what it could not
have seen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

import numpy as np

LEVEL = 0.05
"""Two-sided level of every test here."""
IMPROVED, FELL, UNSHOWN = "improved", "fell", "no difference shown"
"""What may be said of a difference (``claimed``)."""
_CELLS = 1 << 21
"""Random numbers drawn at once."""
_TOGETHER = 20
"""Values that must share one place, on average, before drawing counts is cheaper than drawing items."""


@dataclass(frozen=True)
class Difference:
    """``after - before`` in mean score per item, with its 95 % interval and the exact test's two-sided p.

    ``items`` counts clusters; ``gained`` and ``lost`` those that changed sides; ``detectable`` is the smallest true
    difference that this many items with this much change would have shown in four of five cases (5 % level).
    """

    mean: float
    lower95: float
    upper95: float
    p: float
    items: int
    gained: int
    lost: int
    detectable: float

    def claimed(self, adjusted: float) -> str:
        """What may be said of it, with ``adjusted`` as its p after correction for what was tested beside it."""
        return claimed(adjusted, self.gained - self.lost, self.lower95, self.upper95)

    @property
    def improved(self) -> bool:
        """Whether "improved" may be said of it alone."""
        return self.claimed(self.p) == IMPROVED

    @property
    def worsened(self) -> bool:
        """Whether a loss is proven, as the gate asks: the paired test says so, and the mean fell with it. "Fell" asks
        for the interval, too."""
        return self.p < LEVEL and self.lost > self.gained and self.mean < 0


def claimed(p: float, leaning: float, low: float, high: float) -> str:
    """The word for a difference: ``IMPROVED`` or ``FELL`` where its test and its 95 % interval agree on the side, else
    ``UNSHOWN``. Everything that says "improved" asks here.

    ``p`` is two-sided and corrected for all that is claimed beside it; ``leaning`` has the sign of the side on which
    the test found more (items gained less items lost); ``low`` and ``high`` are the interval of the mean.
    """
    if p >= LEVEL:
        return UNSHOWN
    if leaning > 0 and low > 0:
        return IMPROVED
    return FELL if leaning < 0 and high < 0 else UNSHOWN


def mcnemar(gained: int, lost: int) -> float:
    """Exact two-sided p of McNemar's test (McNemar 1947): the sign test on items that changed sides."""
    changed, fewer = gained + lost, min(gained, lost)
    chance = math.lgamma(changed + 1) - math.lgamma(fewer + 1) - math.lgamma(changed - fewer + 1)
    total, term = 1.0, 1.0
    for k in range(fewer, 0, -1):  # chances of fewer changes, each as a multiple of the greatest
        term *= k / (changed - k + 1)
        total += term
        if term < 1e-17 * total:
            break
    return min(1.0, 2 * math.exp(chance - changed * math.log(2)) * total)


def compare(
    before: Sequence[float],
    after: Sequence[float],
    *,
    clusters: Sequence[str] | None = None,
    rounds: int = 2000,
    seed: int = 0,
) -> Difference:
    """Compare scores of the same items in the same order; several samples of an item share a cluster.

    Scores are shares in [0, 1]. With clusters, or with scores other than 0 and 1, an item counts as gained where its
    mean rose; each cluster counts once, however many samples it has.

    Raises:
        ValueError: not the same items, or none.
    """
    if len(before) != len(after) or not before or (clusters is not None and len(clusters) != len(before)):
        raise ValueError(f"{len(before)} and {len(after)} scores cannot be paired")
    changes = _by_cluster(before, after, clusters)
    gained, lost = sum(c > 0 for c in changes), sum(c < 0 for c in changes)
    low, high = bootstrap(changes, rounds=rounds, seed=seed)
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
    )


def _by_cluster(before: Sequence[float], after: Sequence[float], clusters: Sequence[str] | None) -> list[float]:
    names = clusters or [str(place) for place in range(len(before))]
    groups: dict[str, list[float]] = {}
    for name, old, new in zip(names, before, after, strict=True):
        groups.setdefault(name, []).append(float(new) - float(old))
    return [fmean(changes) for changes in groups.values()]


def outcomes(told: str) -> list[float]:
    """Scores of an evaluation's outcomes, one a character: 1 is right; 0 and ? (undecided) are not."""
    return [float(one == "1") for one in told]


def bootstrap(values: Sequence[float], *, rounds: int = 2000, seed: int = 0) -> tuple[float, float]:
    """95 % percentile interval of the mean, resampling items (Efron 1979).

    Equal values are drawn together, as counts of a multinomial: the same distribution, in a fraction of the time.
    """
    held = np.asarray(values, dtype=float)
    distinct, counts = np.unique(held, return_counts=True)
    size, rng = len(held), np.random.RandomState(seed)  # its stream is frozen: same seed, same interval for ever
    few = _TOGETHER * len(distinct) < size
    step = max(1, _CELLS // (len(distinct) if few else size))
    means: list[float] = []
    while len(means) < rounds:
        n = min(step, rounds - len(means))
        if few:
            means += list(rng.multinomial(size, counts / size, n) @ distinct / size)
        else:
            means += list(held[rng.randint(0, size, (n, size))].mean(axis=1))
    means.sort()
    return float(means[int(0.025 * rounds)]), float(means[math.ceil(0.975 * rounds) - 1])


def holm(ps: Sequence[float]) -> list[float]:
    """Adjusted p values that keep the chance of any false claim at the level (Holm 1979), in the order given."""
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    out, highest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        out[place] = highest
    return out


def detectable(items: int, discordance: float, *, power: float = 0.8, level: float = LEVEL) -> float:
    """Smallest true difference that a paired test of ``items`` shows with ``power``, if this share of them changes
    sides, or as many as the difference itself needs; 1.0 without items.

    Connor (1987), and one item more: the exact test moves in whole items, without it the power would be 0.75 to 0.79.
    """
    if not items:
        return 1.0
    normal = NormalDist()
    a, b = normal.inv_cdf(1 - level / 2), normal.inv_cdf(power)
    found = 0.0
    for _ in range(100):
        share = max(discordance, found, 1 / items)
        found = (a * math.sqrt(share) + b * math.sqrt(max(share - found * found, 0.0))) / math.sqrt(items)
        found = min(1.0, found)
    return min(1.0, found + 1 / items)


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Chance that one of ``k`` of the samples is correct, unbiased (arXiv 2107.03374, section 2.1).

    Raises:
        ValueError: fewer than ``k`` samples.
    """
    if not 0 <= correct <= samples or not 1 <= k <= samples:
        raise ValueError(f"pass@{k} of {correct} in {samples} samples")
    return 1.0 - math.comb(samples - correct, k) / math.comb(samples, k)
