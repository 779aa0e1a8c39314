"""What is compared as it is written: dimensions, permutations in cycles, what is no value of the gold though it has its
figures."""

import re

from agent0.grading.math.points import variables
from agent0.grading.notation.names import value_of

LONGEST = 20
"""Characters of a side with an unknown."""
_gap = re.compile(r"\\[ ,;:!]|\\q?quad(?![A-Za-z])|\\(?:text|mathrm|mbox)(?![A-Za-z])|[${}]|\s+")
_across = re.compile(
    r"(\d{1,5}) ?(?:\\times|\\cdot|[x×X*]|by|-by-) ?(\d{1,5})(?: ?(?:\\times|[x×X*]|by|-by-) ?(\d{1,5}))? ?"  # noqa: RUF001
    r"([A-Za-z][A-Za-z ]{2,})?"
)
_cycles = re.compile(r"(?:\( ?\d+(?: \d+)+ ?\) ?)+")
_unknown = re.compile(r"(?<![A-Za-z\\])(?![eifgphdn])[a-z](?![A-Za-z])")
_letters = re.compile(r"(?<!\\)(?<![A-Za-z])[a-z](?![A-Za-z])")
_call = re.compile(r"(?<!sqrt)\(|(?<![A-Za-z])(?!sqrt|frac|cdot)[A-Za-z]{2,}|\d\s*x\s*\d")
_fraction = re.compile(r"\s*[-−]?\s*(?:\\[dtc]?frac\s*(?:\{[^{}]+\}\s*\{[^{}]+\}|\d\s*\d)|\d+\s*/\s*\d+)\s*")  # noqa: RUF001
_percent = re.compile(r"(.*?)\s*(?:\\?%|\\text\s*\{\s*(?:%|percent)\s*\}|percent|per cent)\s*\.?\s*", re.DOTALL)


def same_dimensions(gold: str, answer: str) -> bool | None:
    """Whether ``3 by 4`` is ``3 x 4``, which is no ``4 x 3`` where a thing is named that has rows and columns; None for
    what may be a product."""
    expected, match = (_across.fullmatch(" ".join(_gap.sub(" ", text).split())) for text in (gold, answer))
    if not (expected and match):
        return None
    if expected.group(1, 2, 3) == match.group(1, 2, 3) and (not expected[4] or not match[4] or expected[4] == match[4]):
        return True
    return False if expected[4] in ("matrix", "grid", "board", "array", "table") else None


def same_permutation(gold: str, answer: str) -> bool | None:
    r"""Whether both are one permutation: ``(1\ 3\ 2)`` and ``(3\ 2\ 1)``; None where the gold is none in cycles."""
    expected = _mapping(gold)
    return None if expected is None else _mapping(answer.rpartition("=")[2]) == expected


def _mapping(text: str) -> dict[str, str] | None:
    bare = " ".join(_gap.sub(" ", text).split()).strip(" .")
    if not _cycles.fullmatch(bare):
        return None
    cycles = [cycle.split() for cycle in re.findall(r"\(([^()]*)\)", bare)]
    mapping = {point: cycle[n - len(cycle) + 1] for cycle in cycles for n, point in enumerate(cycle)}
    return mapping if len(mapping) == sum(map(len, cycles)) else {}


def is_equation_of_unknown(gold: str, answer: str) -> bool | None:
    """False where ``answer`` gives a power, multiple or sum of an unknown (``b^2 = 4``) and the gold is no equation;
    else None."""
    left, sign, right = answer.strip(" $").partition("=")
    if not sign or "=" in gold + right or _letters.search(gold) or _letters.search(right):
        return None
    if not 1 < len(left.strip()) < LONGEST or _call.search(left) or len(set(_unknown.findall(left))) != 1:
        return None
    value = value_of(left)
    if value is None or len(value.below) > 1 or len(value.above) > 2 or variables(value) != set(_unknown.findall(left)):
        return None
    multiples = {factor for monomial, factor in value.above.items() if monomial}
    return False if len(value.above) == 1 or multiples == {1} else None


def is_percent_of_fraction(gold: str, answer: str) -> bool | None:
    """False where ``answer`` is the gold's fraction as a percentage; None for everything else."""
    match = _percent.fullmatch(answer) if _fraction.fullmatch(gold) else None
    return False if match and "".join(match[1].split()) == "".join(gold.split()) else None
