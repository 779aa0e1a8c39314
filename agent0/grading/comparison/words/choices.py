"""Which choice a text takes: "It is (B)." takes B, "(B) is wrong" takes none."""

import re
import unicodedata

from agent0.chat_format import opened
from agent0.grading.comparison.words.bare import without_markup

_GOLD = re.compile(r"\\?(?:text(?:bf|rm)?|mathrm|mathbf)?\s*\{?\s*\(\s*([A-J])\s*\)\s*\}?|\\text\{([A-J])\}")
_LETTER = re.compile(
    r"(?:(?:option|choice|answer)\s*:?\s*)?(?:\(\s*([A-Z])\s*\)|\[\s*([A-Z])\s*\]|([A-Z]))(?:[.):]\s*|\s+-\s+"
    r"|(?<=[)\]])\s*|$)(.*)",
    re.IGNORECASE | re.DOTALL,
)
_ANOTHER = re.compile(
    r"^(?:or|and|/|,|&|but|not|maybe)\b|[(\[]\s*[A-Za-z]\s*[)\]]|(?<![\w'(])[A-Za-z][).](?!\w)|(?<![\w'])[B-HJ-Z](?![\w'])"
)
_clause = re.compile(
    r",?\s+(?:because|since|as|so|which|while|whereas|rather than|instead of|(?:and )?not)\b.*$", re.DOTALL | re.I
)
_ruled_out = re.compile(
    r"^(?:it(?: is|'s) not \(?[A-J]\)?|\(?[A-J]\)? is (?:wrong|incorrect|false|not correct|not right))[,;.]?\s+(?:but"
    r"|so|it|and)\b,?\s*(?:so\s+)?(?:it\b)?(?:\s*(?:is|'s)\b)?\s*",
    re.IGNORECASE,
)
"""A choice that is ruled out before another is taken."""
_lead = re.compile(
    r"(?:(?:so|thus|hence|therefore),?\s+)?(?:(?:it(?: is|'s| must be| has to be)|i(?: would)? (?:choose|pick|select"
    r"|say|go with)|i think(?: it(?: is|'s))?|my (?:choice|answer|pick) is|(?:the )?(?:correct |right |best "
    r"|final )*(?:answer|option|choice)(?: is|:)?)\s*)?(?:(?:definitely|clearly|thus"
    r"|therefore)\s+)?:?\s*(?=(?:option |choice )?[(\[]?\s*[A-J](?![A-Za-z]))",
    re.IGNORECASE,
)
_affirmed = re.compile(
    r"(?<=[A-J\])])\s+is (?:the )?(?:correct|right|best|true)(?: one| answer| option| choice)?\s*[.!]?\s*$",
    re.IGNORECASE,
)
_doubted = re.compile(
    r"\W*[A-J]\W*\s+(?:is|was|would be|are|isn't|can't|cannot|can not|could|might|may|if|unless|when|never|not)\b"
    r"|.*\b(?:not|never|neither|nor|except|but|doubt|either|or|wrong|incorrect|false)\b[^A-J]{0,12}\(?[A-J]\)?\W*$",
    re.DOTALL,
)
_small = re.compile(r"[(\[]\s*([a-j])\s*[)\]][.:]?")
_instead = re.compile(
    r"\(?([A-J])\)?,? (?:and )?(?:not|rather than|instead of) \(?[A-J]\)?\.?"
    r"|\(?([A-J])\)?[,;.:] (?:and |but |while |whereas )?\(?[A-J]\)? (?:is|was|would|are|does|has|can)\b"
    r"[^A-J]*\b(?:distractor|wrong|incorrect|not|too|fails?|false|eliminated|trap)\b[^A-J]*"
)


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
    return choice_of(answer) == (match[1] or match[2]) if match else None


def choice_of(text: str) -> str:
    """Return the one letter that ``text`` takes, empty where it takes none or doubts it."""
    head = _clause.sub("", _ruled_out.sub("", _bare(opened(text[:400]))))
    head = _affirmed.sub("", _lead.sub("", head, count=1)).strip().rstrip(".! ")
    return "" if _doubted.match(head) else letter_of(head)


def same_choice_word(gold: str, answer: str) -> bool | None:
    """True where ``answer`` takes the gold's letter in small letters, or before what it rules out; else None."""
    expected, bare = without_markup(gold).strip(" ."), _bare(answer).strip(" .")
    match = re.fullmatch(r"([A-J])|\(([A-J])\)", expected)
    if match is None:
        return None
    small, instead = _small.fullmatch(bare), _instead.fullmatch(bare)
    letter = small[1].upper() if small else (instead[1] or instead[2]) if instead else ""
    if not letter and len(bare) > len("(C)"):
        letter = choice_of(answer)
    return True if letter == (match[1] or match[2]) else None
