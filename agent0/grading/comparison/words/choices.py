"""Which choice a text takes: "It is (B)." takes B, "(B) is wrong" takes none."""

import re
import unicodedata

from agent0.chat_format import opened
from agent0.grading.comparison.words.terms import without_markup
from agent0.grading.extraction.choices import choice_of

_GOLD = re.compile(r"\\?(?:text(?:bf|rm)?|mathrm|mathbf)?\s*\{?\s*\(\s*([A-J])\s*\)\s*\}?|\\text\{([A-J])\}")
_LETTER = re.compile(
    r"(?:(?:option|choice|answer)\s*:?\s*)?(?:\(\s*([A-Z])\s*\)|\[\s*([A-Z])\s*\]|([A-Z]))(?:[.):]\s*|\s+-\s+"
    r"|(?<=[)\]])\s*|$)(.*)",
    re.IGNORECASE | re.DOTALL,
)
_ANOTHER = re.compile(
    r"^(?:or|and|/|,|&|but|not|maybe)\b|[(\[]\s*[A-Za-z]\s*[)\]]|(?<![\w'(])[A-Za-z][).](?!\w)|(?<![\w'])[B-HJ-Z](?![\w'])"
)
_doubted = re.compile(
    r"\W*[A-J]\W*\s+(?:is|was|would be|are|isn't|can't|cannot|can not|could|might|may|if|unless|when|never|not)\b"
    r"|.*\b(?:not|never|neither|nor|except|but|doubt|either|or|wrong|incorrect|false)\b[^A-J]{0,12}\(?[A-J]\)?\W*$",
    re.DOTALL,
)
_related = re.compile(r"\\[A-Za-z]|[<>=!~\u2190-\u22ff]")
"""Commands, and signs of relations, sets and logic."""
_small = re.compile(r"[(\[]\s*([a-j])\s*[)\]][.:]?")


def _bare(text: str) -> str:
    return without_markup(re.sub(r"\\[{}]", " ", text))


def letter_of(text: str) -> str:
    """``B`` of ``(b)``, ``B.``, ``Option B`` or ``B) the second``; empty where none or more than one is named."""
    match = _LETTER.fullmatch(_bare(unicodedata.normalize("NFKC", text)))
    if match is None or _ANOTHER.search(match[4]):
        return ""
    return (match[1] or match[2] or match[3]).upper()


def same_choice(gold: str, answer: str) -> bool | None:
    """Whether ``answer`` takes the choice ``gold``; None where ``gold`` is no letter of a choice."""
    match = _GOLD.fullmatch(gold.strip())
    return _taken(answer) == (match[1] or match[2]) if match else None


def same_choice_word(gold: str, answer: str) -> bool | None:
    """True where ``answer`` takes the gold's letter, in small letters in brackets too; else None."""
    match = re.fullmatch(r"([A-J])|\(([A-J])\)", without_markup(gold).strip(" ."))
    if match is None:
        return None
    bare = _bare(answer).strip(" .")
    small, taken = _small.fullmatch(bare), _taken(answer) if len(bare) > len("(C)") else ""
    return True if (small[1].upper() if small else taken) == (match[1] or match[2]) else None


def _taken(text: str) -> str:
    """The one letter that ``text`` takes, empty where it takes none or doubts it."""
    bare = _bare(opened(text[:400])).strip(" .")
    letter = None if _related.search(bare) else choice_of(bare)
    return letter or ("" if _doubted.match(bare) else letter_of(bare))
