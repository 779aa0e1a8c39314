"""What is compared as it is written: dimensions, times beside ratios, permutations in cycles, what is no value of the
gold though its figures are there."""

# ruff: noqa: RUF001 (signs as they are written)
import re

_text = re.compile(r"\\(?:text|mathrm|mbox)\s*\{([^{}]*)\}")
_gap = re.compile(r"\\[ ,;:!]|\\q?quad(?![A-Za-z])|[${}]|\s+")
_across = re.compile(
    r"(\d{1,5})\s*(?:\\times|\\cdot|[x×X*]|by|-by-)\s*(\d{1,5})(?:\s*(?:\\times|[x×X*]|by|-by-)\s*(\d{1,5}))?\s*"
    r"([A-Za-z][A-Za-z ]{2,})?"
)
_time = re.compile(r"\d{1,2}:[0-5]\d")
_ratio = re.compile(r"[1-9]\d*:[1-9]\d*")
_cycles = re.compile(r"(?:\(\d+(?: \d+)+\))+")
_unsolved = re.compile(
    r"\s*\$?\s*(?:[-−]\s*([a-z])|-?\d+\s*(?:\\cdot|\*)?\s*([a-z])|([a-z])\s*(?:\^\s*\{?\s*\d\s*\}?|[²³])"
    r"|([a-z])\s*[-+−]\s*\d+|\\sqrt\s*\{\s*([a-z])\s*\}|√\s*([a-z])|sqrt\s*\(\s*(?P<root>[a-z])\s*\)|\\frac\s*\{\s*\d+\s*\}\s*\{\s*([a-z])\s*\}"
    r"|\d+\s*/\s*([a-z])|([a-z])\s*/\s*\d+)\s*=\s*([^=]*)"
)
_letters = re.compile(r"(?<!\\)(?<![A-Za-z])[a-z](?![A-Za-z])")
_CONSTANTS = "eifgphdn"
"""Letters that are a constant, or a function's name in an answer's own words."""
_fraction = re.compile(r"\s*[-−]?\s*(?:\\[dtc]?frac\s*(?:\{[^{}]+\}\s*\{[^{}]+\}|\d\s*\d)|\d+\s*/\s*\d+)\s*")
_percent = re.compile(r"(.*?)\s*(?:\\?%|\\text\s*\{\s*(?:%|percent)\s*\}|percent|per cent)\s*\.?\s*", re.DOTALL)


def same_shape(gold: str, answer: str) -> bool | None:
    """Whether both are one such thing; None where the gold is none of them."""
    bare, other = (" ".join(_gap.sub(" ", _text.sub(r" \1 ", text)).split()) for text in (gold, answer))
    verdict = _dimensions(bare, other)
    return _times(bare, other) if verdict is None else verdict


def _dimensions(gold: str, answer: str) -> bool | None:
    """``3 by 4`` is ``3 x 4``, and no ``4 x 3`` where a thing is named that has rows and columns."""
    expected, match = _across.fullmatch(gold), _across.fullmatch(answer)
    if not (expected and match):
        return None
    if expected.group(1, 2, 3) == match.group(1, 2, 3) and (not expected[4] or not match[4] or expected[4] == match[4]):
        return True
    return False if expected[4] and expected[4] in ("matrix", "grid", "board", "array", "table") else None


def _times(gold: str, answer: str) -> bool | None:
    """A ratio is no time of day: ``3:1`` is not ``3:01``."""
    both = {gold, answer}
    zero = any(_time.fullmatch(text) and text.partition(":")[2][0] == "0" for text in both)
    return False if zero and any(_ratio.fullmatch(text) and not _time.fullmatch(text) for text in both) else None


def same_permutation(gold: str, answer: str) -> bool | None:
    r"""Whether both are one permutation: ``(1\ 3\ 2)`` and ``(3\ 2\ 1)``; None where the gold is none in cycles."""
    expected = _mapping(gold)
    return None if expected is None else _mapping(answer.rpartition("=")[2]) == expected


def _mapping(text: str) -> dict[str, str] | None:
    bare = re.sub(r"\)\s*\(", ")(", " ".join(_gap.sub(" ", text.strip("$ .")).split()))
    if not _cycles.fullmatch(bare.replace("( ", "(").replace(" )", ")")):
        return None
    mapping: dict[str, str] = {}
    for cycle in re.findall(r"\(([^()]*)\)", bare):
        points = cycle.split()
        if len(set(points)) < len(points) or set(points) & mapping.keys():
            return {}
        mapping |= dict(zip(points, [*points[1:], points[0]], strict=True))
    return mapping


def is_equation_of_unknown(gold: str, answer: str) -> bool | None:
    """False where ``answer`` gives a power, multiple or sum of an unknown (``b^2 = 4``) and the gold is no equation;
    else None."""
    match = _unsolved.fullmatch(answer)
    if match is None or "=" in gold or _letters.search(gold) or _letters.search(match[match.re.groups]):
        return None
    return None if next(filter(None, match.groups()[:-1])) in _CONSTANTS else False


def is_percent_of_fraction(gold: str, answer: str) -> bool | None:
    """False where ``answer`` is the gold's fraction as a percentage; None for everything else."""
    match = _percent.fullmatch(answer) if _fraction.fullmatch(gold) else None
    return False if match and "".join(match[1].split()) == "".join(gold.split()) else None
