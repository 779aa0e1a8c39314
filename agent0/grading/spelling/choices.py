"""Which choice a sentence takes: "It is (B)." takes B, "(B) is wrong" takes none."""

import re

from agent0.grading.math.letters import letter_of

_GOLD = re.compile(r"\\?(?:text(?:bf|rm)?|mathrm|mathbf)?\s*\{?\s*\(\s*([A-J])\s*\)\s*\}?|\\text\{([A-J])\}")
_latex = re.compile(r"\\(?:text|math)(?:bf|rm|it)?(?![A-Za-z])|\\(?:boxed|fbox|mbox)|\\ |[${}*`_\\]")
_clause = re.compile(
    r",?\s+(?:because|since|as|so|which|while|whereas|rather than|instead of|(?:and )?not)\b.*$", re.DOTALL | re.I
)
_taken = re.compile(
    r"(?:(?:so|thus|hence|therefore),?\s+)?"
    r"(?:it(?: is|'s| must be| has to be)|i(?: would)? (?:choose|pick|select|go with)|my (?:choice|answer|pick) is"
    r"|(?:the )?(?:correct |right |best |final )*(?:answer|option|choice)(?: is|:)?)?\s*:?\s*"
    r"(?:(?:option|choice|answer)\s*:?\s*)?[(\[]?\s*([A-J])\s*[)\]]?\s*[.:)]?"
    r"(?:\s+is (?:the )?(?:correct|right|best|true)(?: one| answer| option| choice)?)?\s*[.!]?",
    re.IGNORECASE,
)
_doubted = re.compile(
    r"\W*[A-J]\W*\s+(?:is|was|would be|are|isn't|can't|cannot|can not|could|might|may|if|unless|when|never|not)\b"
    r"|.*\b(?:not|never|neither|nor|except|but|doubt|either|or|wrong|incorrect|false)\b[^A-J]{0,12}\(?[A-J]\)?\W*$",
    re.DOTALL,
)


def same_choice(gold: str, said: str) -> bool | None:
    """Whether ``said`` takes the choice ``gold``; None where ``gold`` is no letter of a choice."""
    found = _GOLD.fullmatch(gold.strip())
    return choice_of(said) == (found[1] or found[2]) if found else None


def choice_of(text: str) -> str:
    """Return the one letter that ``text`` takes, empty where it takes none or doubts it."""
    bare = " ".join(_latex.sub(" ", text[:400]).split())
    head = _clause.sub("", bare)
    if taken := _taken.fullmatch(head):
        return taken[1].upper()
    return "" if _doubted.match(head) else letter_of(head)
