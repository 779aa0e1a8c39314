"""Whether chosen items tend to be larger than the others: the rank-sum test, within strata."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt

LEAST = 8
"""Chosen items, and others, below which the normal approximation says nothing."""


@dataclass(frozen=True)
class RankTest:
    """``area``: the probability that a chosen item is larger than another of its stratum, ties half; ``p`` two-sided.
    Both None where there are too few to tell."""

    chosen: int
    others: int
    area: float | None
    p: float | None


def rank_test(strata: Sequence[tuple[Sequence[float], Sequence[float]]]) -> RankTest:
    """Test (chosen, others) of each stratum by Mann and Whitney's U, summed over strata, with the variance of ties
    (normal approximation without continuity correction)."""
    above, pairs, variance, sizes = 0.0, 0, 0.0, [0, 0]
    for chosen, others in strata:
        n, m = len(chosen), len(others)
        if not n or not m:
            continue
        ties = sum(count**3 - count for count in Counter([*chosen, *others]).values())
        total, ordered = n + m, sorted(others)
        above += sum((bisect_left(ordered, x) + bisect_right(ordered, x)) / 2 for x in chosen)
        variance += n * m / 12 * (total + 1 - ties / (total * (total - 1)))
        pairs, sizes = pairs + n * m, [sizes[0] + n, sizes[1] + m]
    if min(sizes) < LEAST or not variance:
        return RankTest(sizes[0], sizes[1], None, None)
    z = (above - pairs / 2) / sqrt(variance)
    return RankTest(sizes[0], sizes[1], above / pairs, erfc(abs(z) / sqrt(2)))
