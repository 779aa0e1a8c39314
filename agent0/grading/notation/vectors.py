"""Vectors of one direction, and columns that are written as binomials."""

import re

_unit = re.compile(
    r"\s*(-?\s*(?:[\d./]+|\\[dt]?frac\s*\{\d+\}\s*\{\d+\})?)\s*(?:\\cdot\s*)?\\(?:mathbf|boldsymbol|bm|hat"
    r"|vec)\s*\{?\s*(?:\\(?:mathbf|hat)\s*\{?\s*)?\\?([ijk])(?:math)?\s*\}*\s*"
)
_many = re.compile(r"\s*(?:\\left\s*)?(?:\\langle|<|⟨|\(|\[|\\begin\s*\{[bp]matrix\}).*", re.DOTALL)
_column = re.compile(r"\\begin\s*\{[bp]matrix\}((?:(?!\\end|&).)+)\\end\s*\{[bp]matrix\}\s*", re.DOTALL)
_binomial = re.compile(r"\s*\\d?binom\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}\s*")


def one_vector(gold: str, said: str) -> tuple[str, str]:
    """Return a multiple of one unit vector as the vector of as many entries as the other side has; a binomial as the
    column of two that the gold is."""
    if (column := _column.fullmatch(gold.strip())) and (found := _binomial.fullmatch(said)):
        two = len([row for row in column[1].split(r"\\") if row.strip()]) == len("ab")
        return gold, rf"\begin{{pmatrix}}{found[1]}\\{found[2]}\end{{pmatrix}}" if two else said
    if (found := _unit.fullmatch(gold)) and _many.fullmatch(said):
        return _written(found, said) or gold, said
    if (found := _unit.fullmatch(said)) and _many.fullmatch(gold):
        return gold, _written(found, gold) or said
    return gold, said


def _written(found: re.Match[str], other: str) -> str:
    """The vector with as many entries as ``other``."""
    size = other.count(",") + 1 if "," in other else len([row for row in other.split(r"\\") if row.strip()])
    if size not in (2, 3) or (size == 2 and found[2] == "k"):
        return ""
    factor = found[1].replace(" ", "")
    value = {"": "1", "-": "-1"}.get(factor, factor)
    return rf"\langle {','.join(value if letter == found[2] else '0' for letter in 'ijk'[:size])} \rangle"
