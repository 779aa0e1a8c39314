"""Which choice a sentence takes: "It is (B)." takes B, "(B) is wrong" takes none."""

import re

from agent0.chat_format import opened
from agent0.grading.math.letters import letter_of

_GOLD = re.compile(r"\\?(?:text(?:bf|rm)?|mathrm|mathbf)?\s*\{?\s*\(\s*([A-J])\s*\)\s*\}?|\\text\{([A-J])\}")
_latex = re.compile(r"\\(?:text|math)(?:bf|rm|it)?(?![A-Za-z])|\\mbox|\\ |[${}*`_\\]")
_clause = re.compile(
    r",?\s+(?:because|since|as|so|which|while|whereas|rather than|instead of|(?:and )?not)\b.*$", re.DOTALL | re.I
)
_another = re.compile(
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


def same_choice(gold: str, answer: str) -> bool | None:
    """Whether ``answer`` takes the choice ``gold``; None where ``gold`` is no letter of a choice."""
    match = _GOLD.fullmatch(gold.strip())
    return choice_of(answer) == (match[1] or match[2]) if match else None


def choice_of(text: str) -> str:
    """Return the one letter that ``text`` takes, empty where it takes none or doubts it."""
    bare = " ".join(_latex.sub(" ", opened(text[:400])).split())
    head = _clause.sub("", _another.sub("", bare))
    head = _affirmed.sub("", _lead.sub("", head, count=1)).strip().rstrip(".! ")
    return "" if _doubted.match(head) else letter_of(head)
