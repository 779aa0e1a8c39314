"""What is no value of the gold though its figures are there: ``b^2 = 4`` for 4, ``14/3 %`` for 14/3."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

_unsolved = re.compile(
    r"\s*\$?\s*(?:[-−]\s*([a-z])|-?\d+\s*(?:\\cdot|\*)?\s*([a-z])|([a-z])\s*(?:\^\s*\{?\s*\d\s*\}?|[²³])"
    r"|([a-z])\s*[-+−]\s*\d+|\\sqrt\s*\{\s*([a-z])\s*\}|√\s*([a-z])|sqrt\s*\(\s*(?P<root>[a-z])\s*\)|\\frac\s*\{\s*\d+\s*\}\s*\{\s*([a-z])\s*\}"
    r"|\d+\s*/\s*([a-z])|([a-z])\s*/\s*\d+)\s*=\s*([^=]*)"
)
_letters = re.compile(r"(?<!\\)(?<![A-Za-z])[a-z](?![A-Za-z])")
_KNOWN = "eifgphdn"
"""Letters that are a constant, or a function's name in an answer's own words."""


def is_equation_of_unknown(gold: str, answer: str) -> bool | None:
    """False where ``answer`` gives a power, multiple or sum of an unknown and the gold is no equation; else None."""
    match = _unsolved.fullmatch(answer)
    if match is None or "=" in gold or _letters.search(gold) or _letters.search(match[match.re.groups]):
        return None
    name = next(filter(None, match.groups()[:-1]))
    return None if name in _KNOWN else False


_fraction = re.compile(r"\s*[-−]?\s*(?:\\[dtc]?frac\s*(?:\{[^{}]+\}\s*\{[^{}]+\}|\d\s*\d)|\d+\s*/\s*\d+)\s*")
_percent = re.compile(r"(.*?)\s*(?:\\?%|\\text\s*\{\s*(?:%|percent)\s*\}|percent|per cent)\s*\.?\s*", re.DOTALL)


def is_percent_of_fraction(gold: str, answer: str) -> bool | None:
    """False where ``answer`` is the gold's fraction as a percentage; None for everything else."""
    match = _percent.fullmatch(answer) if _fraction.fullmatch(gold) else None
    return False if match and "".join(match[1].split()) == "".join(gold.split()) else None
