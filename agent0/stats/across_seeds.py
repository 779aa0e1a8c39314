"""Statistics over a few seeds: means with Student's t intervals, and the paired t test (Student 1908)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from agent0.stats.paired_tests import LEVEL

POWER = 0.8
ROUNDING = 1e-12
"""An error of a mean below it is that of the arithmetic: shares of the same items differ by their last bits."""


@dataclass(frozen=True)
class Mean:
    """The mean of ``n`` values with its 95 % t interval over seeds; the bounds are None for a single value."""

    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class SeedTest:
    """A paired t test of differences, one a seed: two-sided ``p`` that their mean is 0, the 95 % interval of the mean,
    and the smallest true mean that would be significant with a power of 80 %. None where a single seed leaves it
    unknown."""

    p: float | None
    low: float | None
    high: float | None
    detectable: float | None


def mean_of(values: Sequence[float]) -> Mean:
    """Average ``values``, with a 95 % t interval where there are at least two.

    Raises:
        ValueError: there is no value.
    """
    if len(values) < 2:
        return Mean(fmean(values), None, None, len(values))
    centre, half = fmean(values), quantile(1 - LEVEL / 2, len(values) - 1) * _error(values)
    return Mean(centre, centre - half, centre + half, len(values))


def interval_of(values: Sequence[float], level: float) -> tuple[float, float]:
    """Student's t interval of the mean of at least two ``values`` at ``level`` (0.05: 95 %). Where all values are equal
    it reaches to 0, unless they are enough for the exact sign test to be significant."""
    centre, error = fmean(values), _error(values)
    if error <= ROUNDING and _exact(values) >= level:
        return min(centre, 0.0), max(centre, 0.0)
    half = quantile(1 - level / 2, len(values) - 1) * error
    return centre - half, centre + half


def tested(differences: Sequence[float]) -> SeedTest:
    """Test whether the mean of paired ``differences`` (one a seed) is 0.

    Where all differences are equal the t test is undefined and the exact sign test gives p.

    Raises:
        ValueError: there is no difference.
    """
    if not differences:
        raise ValueError("no difference")
    if len(differences) < 2:
        return SeedTest(None, None, None, None)
    centre, degrees, error = fmean(differences), len(differences) - 1, _error(differences)
    # where every seed says the same there is no error to measure by: the exact test of signs is what is left
    p = 2 * (1 - share_below(abs(centre) / error, degrees)) if error > ROUNDING else _exact(differences)
    needed = (quantile(1 - LEVEL / 2, degrees) + quantile(POWER, degrees)) * error
    return SeedTest(p, *interval_of(differences, LEVEL), needed)


def _exact(values: Sequence[float]) -> float:
    """The p of the exact sign test for equal ``values``."""
    return 2.0 ** (1 - len(values)) if fmean(values) else 1.0


def _error(values: Sequence[float]) -> float:
    return stdev(values) / math.sqrt(len(values))


def share_below(t: float, degrees: int) -> float:
    """Student's t distribution function at ``t``, exactly (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    angle = math.atan(abs(t) / math.sqrt(degrees))
    cosine = math.cos(angle)
    odd = degrees % 2
    term = total = cosine if odd else 1.0
    for n in range(2 + odd, degrees - 1, 2):
        term *= cosine * cosine * (n - 1) / n
        total += term
    if odd:
        inside = 2 / math.pi * (angle + (math.sin(angle) * total if degrees > 1 else 0.0))
    else:
        inside = math.sin(angle) * total
    return 0.5 + math.copysign(inside / 2, t)


def quantile(share: float, degrees: int) -> float:
    """The upper quantile (``share`` >= 0.5) of Student's t distribution with ``degrees`` degrees of freedom."""
    low, high = 0.0, 1.0
    while share_below(high, degrees) < share:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if share_below(middle, degrees) < share else (low, middle)
    return high
