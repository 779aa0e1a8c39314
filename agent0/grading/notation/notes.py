"""An answer without what stands beside it: notes in brackets, struck-out values, blanks that do not break, its value
again in words or figures."""

import re
from collections.abc import Iterator
from fractions import Fraction

from agent0.grading.comparison.quantities import same_quantity
from agent0.grading.math.algebra import Quotient, number, rational, same
from agent0.grading.math.points import NoValueError, value_at
from agent0.grading.notation.names import value_of
from agent0.grading.notation.numerals import figures

_struck = re.compile(
    r"~~[^~\n]+~~|<(s|del|strike)>.*?</\1>|\\(?:cancel|xcancel|bcancel|sout|st)\s*\{[^{}]*\}", re.DOTALL | re.IGNORECASE
)
_blank = re.compile(r"^\s*~(.*)~\s*$", re.DOTALL)
_note = re.compile(
    r"(?P<value>.+?)(?:\\[ ,;:!]|\\quad|~|\s)*(?:\\(?:text(?:bf|rm|it)?|mathrm|mbox)\s*\{\s*)?"
    r"[(\[]\s*(?P<note>[^()\[\]]{1,80})\s*[)\]]\s*\}?(?P<unit>\s+[a-z]+)?\s*\.?",
    re.DOTALL,
)
_TELLING = re.compile(
    r"\b(?:not|no|or|and|if|mod|base|less|more|wrong|only|to|each|either|unless|incorrect|false|per|times|squared"
    r"|cubed|minus|negative|radians?|degrees?|percent|dollars?|cents?|factorial|approximately|rounded|am|pm|bc|ad)\b"
    r"|[=<>]"
)
_again = re.compile(r"(?:i\.e\.|that is|equivalently|≈|\\?approx\w*|about|roughly|which is)[,:]? ?(?![\d.,/-]+\Z)\S")
_same_as = re.compile(
    r"^(?:or|i\.e\.|that is|equivalently|or equivalently|about|approx\w*\.?|roughly|exactly|just|which is|also)[,:]? "
    r"|^\s*(?:=|≈|~|\\approx)\s*",
    re.IGNORECASE,
)
_sides = re.compile(r"\s*(?:=|≈|\\approx)\s*|,? or |;\s")
_percent = re.compile(r"\s*(?:\\?%|percent)\s*\Z")
_decimal = re.compile(r"-?\d*\.?\d+")
MOST_ROUNDED = 0.005
_prose = re.compile(r"[A-Za-z][a-z'-]*(?:[ -][a-z'-]+){0,7}")


def without_notes(gold: str, answer: str) -> Iterator[str]:
    """Yield ``answer`` without notes, as far as the gold has none of the kind."""
    kept = answer if _struck.search(gold) else _struck.sub(" ", answer)
    bare = _blank.sub(r"\1", kept).strip()
    if bare != answer.strip():
        yield bare
    if "(" in gold or "[" in gold:
        return
    match = _note.fullmatch(bare)
    if match is None or match["value"].count("(") != match["value"].count(")"):
        return
    yield from _without_note(match)


def _without_note(match: re.Match[str]) -> Iterator[str]:
    value, note = match["value"].strip(" $"), match["note"].strip(" $")
    if _again.match(note) or _says_again(value, note):
        yield f"{value}{match['unit'] or ''}"
    elif not match["unit"] and _prose.fullmatch(note) and not _TELLING.search(note) and figures(note) == note:
        yield value


def _says_again(value: str, note: str) -> bool:
    """Whether each side of ``note`` is ``value`` once more: as a percentage, rounded, in words, or still to compute."""
    sides = [side for side in _sides.split(_same_as.sub("", note)) if side.strip(" $")]
    return bool(sides) and all(_is_same(value, side.strip(" $")) for side in sides)


def _is_same(value: str, other: str) -> bool:
    left, right = (_share(text) for text in (value, other))
    if left is None or right is None:
        return same_quantity(value, other) is True
    if same(left, right):
        return True
    exact, rounded = rational(left), rational(right)
    if exact is None or rounded is None or not _decimal.fullmatch(other.rstrip("%\\ ")):
        return bool(_decimal.fullmatch(other) and rounded is not None and _close(left, rounded))
    places = len(other.rstrip("%\\ ").partition(".")[2]) + 2 * ("%" in other)
    return abs(exact - rounded) < Fraction(1, 10**places)


def _close(value: Quotient, rounded: Fraction) -> bool:
    """Whether an irrational number is ``rounded`` but for its last digits."""
    try:
        number = value_at(value, {})
    except NoValueError:
        return False
    return bool(abs(number - float(rounded)) <= MOST_ROUNDED * abs(number))


def _share(text: str) -> Quotient | None:
    """The value of ``text``, of a percentage the share that it is."""
    bare = _percent.sub("", text)
    value = value_of(figures(bare))
    return value / number(100) if value and bare != text else value
