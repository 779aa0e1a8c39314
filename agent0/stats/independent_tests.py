"""A test of two shares that come from different items."""

from math import comb


def fisher(right: int, n: int, other_right: int, m: int) -> float:
    """Two-sided p of Fisher's exact test (Fisher 1922): ``right`` of ``n`` against ``other_right`` of ``m``.

    The chance, both shares being one, of a table that is as unlikely as this one; computed in whole numbers.
    """
    total = right + other_right

    def ways(first: int) -> int:
        return comb(n, first) * comb(m, total - first)

    tables = map(ways, range(max(0, total - m), min(n, total) + 1))
    here = ways(right)
    return sum(table for table in tables if table <= here) / comb(n + m, total)
