"""Intervals on shares, exact where the field has exact ones, and a test of two shares of different items."""

import math

Z95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Wilson score interval of a share (Wilson 1927), which lies in it; (0, 1) where n is 0."""
    if not n:
        return 0.0, 1.0
    share, z = successes / n, Z95
    centre = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low, high = (centre - half) / scale, (centre + half) / scale
    return max(0.0, min(share, low)), min(1.0, max(share, high))  # rounding must not leave the share outside


def quantile(values: list[float], q: float) -> float:
    """Nearest-rank quantile of ``values``: the smallest one that at least the share ``q`` of them does not exceed.

    Its rank is ceil(q n), from 1; 0.0 for an empty list.
    """
    ordered = sorted(values)
    rank = math.ceil(round(q * len(ordered), 9))  # 0.55 * 100 is a little more than 55
    return ordered[max(rank, 1) - 1] if ordered else 0.0


def fisher(right: int, n: int, other_right: int, m: int) -> float:
    """Two-sided p of Fisher's exact test (Fisher 1922): ``right`` of ``n`` against ``other_right`` of ``m``.

    The chance, both shares being one, of a table that is as unlikely as this one; computed in whole numbers.
    """
    total = right + other_right

    def ways(first: int) -> int:
        return math.comb(n, first) * math.comb(m, total - first)

    tables = map(ways, range(max(0, total - m), min(n, total) + 1))
    here = ways(right)
    return sum(table for table in tables if table <= here) / math.comb(n + m, total)
