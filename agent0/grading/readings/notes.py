"""An answer without what stands beside it: notes in brackets, struck-out values, blanks that do not break, its value
again in words or figures."""

import re
from collections.abc import Iterator

from agent0.grading.spelling.numerals import figures

_struck = re.compile(
    r"~~[^~\n]+~~|<(s|del|strike)>.*?</\1>|\\(?:cancel|xcancel|bcancel|sout|st)\s*\{[^{}]*\}", re.DOTALL | re.IGNORECASE
)
_blank = re.compile(r"^\s*~(.*)~\s*$", re.DOTALL)
_aligned = re.compile(r"\\begin\{(aligned|align\*?|gathered|split)\}((?:(?!\\\\).)*)\\end\{\1\}", re.DOTALL)
"""One row of a display."""
_per_cent = re.compile(r"\bper cent\b", re.IGNORECASE)
_note = re.compile(
    r"(?P<value>.+?)(?:\\[ ,;:!]|\\quad|~|\s)*(?:\\(?:text(?:bf|rm|it)?|mathrm|mbox)\s*\{\s*)?"
    r"[(\[]\s*(?P<note>[^()\[\]]{1,80})\s*[)\]]\s*\}?\s*\.?",
    re.DOTALL,
)
_TELLING = re.compile(
    r"\b(?:not|no|or|and|if|mod|base|less|more|wrong|only|to|each|either|unless|incorrect|false|per|times|squared|cubed|minus"
    r"|negative|radians?|degrees?|percent|dollars?|cents?|factorial|approximately|rounded|am|pm|bc|ad)\b|[=<>]"
)
_again = re.compile(r"(?:i\.e\.|that is|equivalently|≈|\\approx|about|approx\w*|roughly|which is)[,:]? ?\S")
_prose = re.compile(r"[A-Za-z][a-z'-]*(?:[ -][a-z'-]+){0,7}")


def without_notes(gold: str, said: str) -> Iterator[str]:
    """Yield ``said`` without notes, as far as the gold has none of the kind."""
    bare = _per_cent.sub(
        "percent", _blank.sub(r"\1", _struck.sub(" ", said) if not _struck.search(gold) else said)
    ).strip()
    if rows := _aligned.fullmatch(bare):
        bare = rows[2].replace("&", " ").strip()
    if bare != said.strip():
        yield bare
    if "(" in gold or "[" in gold:
        return
    found = _note.fullmatch(bare)
    if found is None or found["value"].count("(") != found["value"].count(")"):
        return
    value, note = found["value"].strip(" $"), found["note"].strip(" $")
    if _again.match(note):
        yield value
    if _repeats(value, note):
        yield _figures(value)
    elif _prose.fullmatch(note) and not _TELLING.search(note) and figures(note.lower()) == note.lower():
        yield value


def _repeats(value: str, note: str) -> bool:
    """Whether both are one number, one of them in words."""
    one, other = _figures(value), _figures(note)
    return one == other and bool(re.search(r"\d", one)) and (one != value or other != note)


def _figures(text: str) -> str:
    number = figures(text.lower()) if not re.search(r"\d", text) else text
    return re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", number).strip(" .")
