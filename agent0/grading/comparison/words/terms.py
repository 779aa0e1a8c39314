"""Answers that are one word: valid or invalid, a letter of a choice, a name."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

from agent0.grading.comparison.words.choices import choice_of
from agent0.grading.math.letters import letter_of

_markup = re.compile(r"\\(?:text(?:bf|rm|it)?|mathrm|mathbf|mbox)\s*|[${}*`_]|\\[ ,;:!]")
_quotes = re.compile("^[\"'“”‘’«»„‹›]+|[\"'“”‘’«»„‹›]+$")
_validity = re.compile(
    r"(?:(?:so|thus|hence|therefore),? )?(?:(?:the|this) (?:argument|reasoning|inference|conclusion"
    r"|deduction)(?: here)? (?:is|must be)|it is|it's)?\s*(?:deductively|logically|therefore|thus|clearly"
    r"|formally)?\s*(not )?(valid|invalid)(?: argument)?"
)
_letter = re.compile(r"[A-J]")
_small = re.compile(r"[(\[]\s*([a-j])\s*[)\]][.:]?")
_instead = re.compile(r"\(?([A-J])\)?,? (?:and )?(?:not|rather than|instead of) \(?[A-J]\)?\.?")
_sentence = re.compile(
    r"(?:(?:so|thus|hence|therefore),? )?(?:(?:it|this|that|the (?:answer|result|\w+))(?: is|['’]s"
    r"| must be) )?(?:always )?(?:(?:an?|the|on) )?([a-z'-]+)(?: (?:functions?|numbers?|integers?|triangles?|matrix"
    r"|graphs?|sequences?|series|angles?|quadrilaterals?|relations?))?"
)
_others = re.compile(
    r"\(?([A-J])\)?[,;.:] (?:and |but |while |whereas )?\(?[A-J]\)? (?:is|was|would|are|does|has|can)\b"
    r"[^A-J]*\b(?:distractor|wrong|incorrect|not|too|fails?|false|eliminated|trap)\b[^A-J]*"
)
_word = re.compile(r"[A-Za-z][A-Za-z'-]{2,}(?: [A-Za-z][A-Za-z'-]*){0,3}")


def same_validity(gold: str, answer: str) -> bool | None:
    """Whether ``answer`` calls an argument what the gold calls it; None where the gold is neither valid nor invalid."""
    expected = _bare(gold).lower()
    if expected not in ("valid", "invalid"):
        return None
    match = _validity.fullmatch(_bare(answer).lower())
    if match is None:
        return None
    return ((match[2] == "valid") != bool(match[1])) == (expected == "valid")


def same_choice_word(gold: str, answer: str) -> bool | None:
    """True where ``answer`` takes the gold's letter in small letters, or before what it rules out; else None."""
    expected = _bare(gold)
    if not _letter.fullmatch(expected) and not (
        expected := letter_of(gold) if re.fullmatch(r"\([A-J]\)", _bare(gold)) else ""
    ):
        return None
    bare = _bare(answer)
    small, instead = _small.fullmatch(bare), _instead.fullmatch(bare)
    instead = instead or _others.fullmatch(bare)
    letter = (
        small[1].upper() if small else instead[1] if instead else choice_of(answer) if len(bare) > len("(C)") else ""
    )
    return True if letter == expected else None


def same_word(gold: str, answer: str) -> bool | None:
    """True where ``answer`` is the gold's words in quotation marks or with another case; None otherwise."""
    expected = _bare(gold)
    if not _word.fullmatch(expected):
        return None
    bare = _quotes.sub("", _bare(answer).rstrip(".")).casefold()
    sentence = _sentence.fullmatch(bare)
    return True if expected.casefold() in (bare, sentence[1] if sentence else "") else None


def _bare(text: str) -> str:
    return " ".join(_markup.sub(" ", text).split()).strip(" .")
