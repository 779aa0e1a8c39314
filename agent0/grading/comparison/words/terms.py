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


def same_validity(gold: str, said: str) -> bool | None:
    """Whether ``said`` calls an argument what the gold calls it; None where the gold is neither valid nor invalid."""
    wanted = _bare(gold).lower()
    if wanted not in ("valid", "invalid"):
        return None
    found = _validity.fullmatch(_bare(said).lower())
    if found is None:
        return None
    return ((found[2] == "valid") != bool(found[1])) == (wanted == "valid")


def same_choice_word(gold: str, said: str) -> bool | None:
    """True where ``said`` takes the gold's bare letter in small letters and brackets, or before what it rules out; None
    otherwise."""
    wanted = _bare(gold)
    if not _letter.fullmatch(wanted) and not (
        wanted := letter_of(gold) if re.fullmatch(r"\([A-J]\)", _bare(gold)) else ""
    ):
        return None
    bare = _bare(said)
    small, instead = _small.fullmatch(bare), _instead.fullmatch(bare)
    instead = instead or _others.fullmatch(bare)
    letter = small[1].upper() if small else instead[1] if instead else choice_of(said) if len(bare) > len("(C)") else ""
    return True if letter == wanted else None


def same_word(gold: str, said: str) -> bool | None:
    """True where ``said`` is the gold's words in quotation marks or with another case; None otherwise."""
    wanted = _bare(gold)
    if not _word.fullmatch(wanted):
        return None
    bare = _quotes.sub("", _bare(said).rstrip(".")).casefold()
    sentence = _sentence.fullmatch(bare)
    return True if wanted.casefold() in (bare, sentence[1] if sentence else "") else None


def _bare(text: str) -> str:
    return " ".join(_markup.sub(" ", text).split()).strip(" .")
