"""Words and signs that say that there is no value, or no solution."""

import re

_markup = re.compile(r"\\(?:text(?:bf|rm|it)?|mathrm|mbox|operatorname)\s*|[${}*`\"]|\\[ ,;:!]")
_FILL = (
    r"(?:the|this|that|a|an|it|such|value|limit|integral|expression|sum|series|function|derivative|equation|system|real|any"
    r"|solutions?|answer|is|are|has|have|there|set|of|possible|valid|integer|so|because|hence)"
)
_lead = rf"(?:{_FILL}\s+)*"
_UNDEFINED = re.compile(
    rf"{_lead}(?:dne|d\.n\.e|does not exist|doesn't exist|do not exist|undefined|not defined|non-?existent)",
    re.IGNORECASE,
)
_NONE = re.compile(
    rf"\\?emptyset|\\?varnothing|∅|\\?\{{\s*\\?\}}|(?:the )?empty set|{_lead}(?:no|not any"
    rf"|zero) {_FILL}(?:\s+{_FILL})*(?: exists?)?"
    r"(?: (?:to|for|of) (?:this|the|these) [a-z]+)?|none|nothing|no [a-z]+ (?:solutions?|values?|numbers?"
    r"|roots?)(?: exists?)?|(?:it is |the system is )?inconsistent|empty|(?:the )?(?:solution )?set is empty",
    re.IGNORECASE,
)
_holds_one = re.compile(r"\$?\\?\{\s*(?:∅|\\emptyset|\\varnothing|\\?\{\s*\\?\})\s*\\?\}\$?")
"""The set of the empty set."""
_BARE = {"no", "none of these", "not"}


def same_nothing(gold: str, answer: str) -> bool | None:
    """Whether ``answer`` says in other words that there is nothing, as the gold does; None where the gold does not, or
    where ``answer`` says neither."""
    expected, found = _kind(gold), _kind(answer)
    return True if expected and expected == found else None


def _kind(text: str) -> str:
    bare = " ".join(text.split()).strip(" .!")
    if bare in (r"\{\}", r"\{ \}", "{}", "{ }"):
        return "none"
    if _holds_one.fullmatch(bare):
        return ""
    bare = " ".join(_markup.sub(" ", text).split()).strip(" .!")
    if not bare or bare.lower() in _BARE:
        return ""
    if _UNDEFINED.fullmatch(bare):
        return "undefined"
    return "none" if _NONE.fullmatch(bare) else ""
