"""Intervals on shares, exact where the field has exact ones."""

import math

Z95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""


def wilson(successes: int, n: int, z: float = Z95) -> tuple[float, float]:
    """Wilson score interval of a share (Wilson 1927), which lies in it; (0, 1) where n is 0."""
    if not n:
        return 0.0, 1.0
    share = successes / n
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
