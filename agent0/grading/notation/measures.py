"""Money, lengths in feet and inches and durations as sums of quantities, which ``equivalence.quantities`` compares."""

# ruff: noqa: RUF001 (signs as they are written)
import re
from fractions import Fraction

from agent0.grading.comparison.quantities import known_unit

_dollars = re.compile(r"(-?)\s*(?:\\?\$|USD\s*|US\$)\s*(\d[\d,]*(?:\.\d+)?|\.\d+)\s*(?:USD|dollars)?")
_written_dollars = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s*(?:\\text\s*\{\s*)?\s*(?:USD|dollars?|bucks)\s*\}?\s*\.?")
_cents = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*(?:\\(?:text|mathrm)\s*\{\s*)?\s*(?:cents?|¢|\\cent)\s*\}?\s*\.?", re.IGNORECASE
)
_both = re.compile(r"\s*(\d{1,9})\s*dollars?\s*(?:and|,)\s*(\d{1,2})\s*cents?\s*\.?")
_feet = re.compile(
    r"\s*(\d{1,4})\s*(?:'|’|′|ft\.?|feet|foot)\s*(?:,|and|-)?\s*(\d{1,2}(?:\.\d+)?)\s*(?:\"|”|″|''|in\.?|inches|inch)\s*"
)
_text = re.compile(r"\\(?:text|mathrm)\s*\{([^{}]*)\}")
_hms = re.compile(r"(\d{1,3}):([0-5]\d):([0-5]\d)")
_spoken = re.compile(
    r"(?:(\d{1,3})\s*(?:h|hrs?|hours?))?[\s,]*(?:and\s+)?(?:(\d{1,3})\s*(?:m|mins?|minutes?))?[\s,]*(?:and\s+)?"
    r"(?:(\d{1,5})\s*(?:s|secs?|seconds?))?\.?"
)


_unit = re.compile(
    r"(?<=[\d})])(?:\\[ ,;:]|~|\s)*\\(?:text|mathrm)\s*\{\s*([A-Za-z .]+?)\s*\}\s*"
    r"(?:\^\s*\{?\s*([23])\s*\}?)?\s*\.?\s*$"
)
_commands = re.compile(r"\\[A-Za-z]+")


def measured(gold: str, answer: str) -> tuple[str, str]:
    """Return both in one unit, where the gold is money, feet and inches or hours, minutes and seconds."""
    plain = [_text.sub(r"\1", one).strip() for one in (gold, answer)]
    for same in (_money, _lengths, _durations):
        if found := same(*plain):
            return found
    return gold, _without_unit(gold, answer)


def _without_unit(gold: str, answer: str) -> str:
    """``answer`` without a unit of physics behind it, where the gold has no words."""
    match = _unit.search(answer)
    if (
        not match
        or match[1].startswith(("deg", "rad"))
        or r"\text" in gold
        or re.search(r"[A-Za-z]{2}|[%°$]|circ", _commands.sub("", gold))
    ):
        return answer
    return answer[: match.start()] if known_unit(f"{match[1]}^{match[2]}" if match[2] else match[1]) else answer


def _money(gold: str, answer: str) -> tuple[str, str] | None:
    """Cents for dollars or the other way round: one side of each."""
    if (match := _both.fullmatch(answer)) and _dollars.fullmatch(gold):
        return gold, f"\\${match[1]}.{int(match[2]):02}"
    for first, second in ((gold, answer), (answer, gold)):
        dollars = _dollars.fullmatch(first) or _written_dollars.fullmatch(first)
        if dollars and (cents := _cents.fullmatch(second)):
            amount = dollars[dollars.lastindex or 0].replace(",", "")
            sides = amount, str(Fraction(cents[1]) / 100)
            return sides if first is gold else (sides[1], sides[0])
    return None


def _lengths(gold: str, answer: str) -> tuple[str, str] | None:
    found = [_feet.fullmatch(one) for one in (gold, answer)]
    inches = [f"{one[1]} feet {one[2]} inches" if one else None for one in found]
    return (inches[0], inches[1] or answer) if inches[0] else None


def _durations(gold: str, answer: str) -> tuple[str, str] | None:
    """Seconds, where one side is written with colons twice."""
    if not (_hms.fullmatch(gold) or _hms.fullmatch(answer)):
        return None
    found = [_hms.fullmatch(one) or _spoken.fullmatch(one) for one in (gold, answer)]
    seconds = [
        sum(int(n or 0) * k for n, k in zip(one.groups(), (3600, 60, 1), strict=True)) if one else 0 for one in found
    ]
    return (str(seconds[0]), str(seconds[1])) if all(seconds) else None
