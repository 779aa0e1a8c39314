"""Answers that are one word or a row of them: nothing, yes or no, valid or not, a name, brackets, words in order."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import html
import re

from agent0.grading.comparison.words.bare import without_markup

_FILL = (
    r"(?:the|this|that|a|an|it|such|value|limit|integral|expression|sum|series|function|derivative|equation|system|real|any"
    r"|solutions?|answer|is|are|has|have|there|set|of|possible|valid|integer|so|because|hence)"
)
_UNDEFINED = re.compile(
    rf"(?:{_FILL}\s+)*(?:dne|d\.n\.e|does not exist|doesn't exist|do not exist|undefined|not defined|non-?existent)",
    re.IGNORECASE,
)
_NONE = re.compile(
    rf"\\?emptyset|\\?varnothing|∅|(?:the )?empty set|(?:{_FILL}\s+)*(?:no|not any|zero) {_FILL}"
    rf"(?:\s+{_FILL})*(?: exists?)?(?: (?:to|for|of) (?:this|the|these) [a-z]+)?"
    r"|none|nothing|no [a-z]+ (?:solutions?|values?|numbers?|roots?)(?: exists?)?"
    r"|(?:it is |the system is )?inconsistent|empty|(?:the )?(?:solution )?set is empty",
    re.IGNORECASE,
)
_no_members = re.compile(r"\\?\{\s*\\?\}")
_holds_one = re.compile(r"[\s{$]*\\?\{\s*(?:∅|\\emptyset|\\varnothing|\\?\{\s*\\?\})\s*\\?\}[\s}$]*")
"""The set of the empty set."""
_truth = re.compile(r"(yes|no|true|false)\b", re.IGNORECASE)
_reason = re.compile(
    r"\s*(?:[.!]?|(?:[,.;:!-]|because|since|as)(?!\s*(?:yes|no|or|and|true|false)\b)\s.*)\s*", re.IGNORECASE | re.DOTALL
)
_quotes = "\"'“”‘’«»„‹›"
_validity = re.compile(
    r"(?:(?:so|thus|hence|therefore),? )?(?:(?:the|this) (?:argument|reasoning|inference|conclusion"
    r"|deduction)(?: here)? (?:is|must be)|it is|it's)?\s*(?:deductively|logically|therefore|thus|clearly"
    r"|formally)?\s*(not )?(valid|invalid)(?: argument)?"
)
_sentence = re.compile(
    r"(?:(?:so|thus|hence|therefore),? )?(?:(?:it|this|that|the (?:answer|result|\w+))(?: is|['’]s"
    r"| must be) )?(?:always )?(?:(?:an?|the|on) )?([a-z'-]+)(?: (?:functions?|numbers?|integers?|triangles?|matrix"
    r"|graphs?|sequences?|series|angles?|quadrilaterals?|relations?))?"
)
_name = re.compile(r"[A-Za-z][A-Za-z'-]{2,}(?: [A-Za-z][A-Za-z'-]*){0,3}")
_fonts = re.compile(
    r"\\(?:text(?:tt|bf|rm|it)?|math(?:tt|rm)|mbox|verb)\s*(?=\{)|\\[ ,;:!]|[$`\s,'\"]|\\(?=[{}\[\]()<>])"
)
_brackets = re.compile(r"[()\[\]{}<>]+")
_row = re.compile(r"[a-z][a-z'-]*(?: [a-z][a-z'-]*){2,}")
_marks = re.compile(
    r"\\(?:text(?:bf|rm|it)?|mathrm|mbox)\s*\{|[\[\]{}()\"'“”‘’`*_$]|(?:^|\s)(?:[-•+*]|\d{1,2}[.)])\s+", re.MULTILINE
)
_joint = re.compile(r"\s*(?:,\s*(?:and\s+|then\s+)?|;|\n|→|->|=>|<|>|\|)\s*|\s+and\s+|\s+")
_FUNCTION = re.compile(r"\b(?:the|a|an|is|are|was|of|to|in|on|no|not|it|there|for|with|by|that|this|all|does|do)\b")


def same_nothing(gold: str, answer: str) -> bool | None:
    """Whether ``answer`` says in other words that there is nothing, as the gold does; None where the gold does not, or
    where ``answer`` says neither."""
    expected = _nothing(gold)
    return True if expected and expected == _nothing(answer) else None


def _nothing(text: str) -> str:
    if _no_members.fullmatch(" ".join(text.split()).strip(" .!")):
        return "none"
    bare = without_markup(text.replace('"', " ")).strip(" .!")
    if _holds_one.fullmatch(text.strip(" .!")) or not bare or bare.lower() in ("no", "none of these", "not"):
        return ""
    return "undefined" if _UNDEFINED.fullmatch(bare) else "none" if _NONE.fullmatch(bare) else ""


def same_truth(gold: str, answer: str) -> bool | None:
    """Whether ``answer`` says the gold's yes or no, with a reason behind it or not; None where the gold is neither."""
    bare = without_markup(answer)
    expected, truth = _truth.fullmatch(without_markup(gold).strip(" .")), _truth.match(bare)
    if expected is None or truth is None or not _reason.fullmatch(bare[truth.end() :]):
        return None
    return expected[1].lower() == truth[1].lower()


def same_validity(gold: str, answer: str) -> bool | None:
    """Whether ``answer`` calls an argument what the gold calls it; None where the gold is neither valid nor invalid."""
    expected = without_markup(gold).strip(" .").lower()
    match = _validity.fullmatch(without_markup(answer).strip(" .").lower())
    if match is None or expected not in ("valid", "invalid"):
        return None
    return ((match[2] == "valid") != bool(match[1])) == (expected == "valid")


def same_word(gold: str, answer: str) -> bool | None:
    """True where ``answer`` is the gold's words in quotation marks or with another case; None otherwise."""
    expected = without_markup(gold).strip(" .")
    if not _name.fullmatch(expected):
        return None
    bare = without_markup(answer).strip(" .").strip(_quotes).casefold()
    sentence = _sentence.fullmatch(bare)
    return True if expected.casefold() in (bare, sentence[1] if sentence else "") else None


def same_brackets(gold: str, answer: str) -> bool | None:
    """Whether both are one sequence of brackets; None where the gold is none, or a pair of brackets with nothing in
    it."""
    expected = "".join(gold.split())
    if not _brackets.fullmatch(expected) or expected in ("()", "[]", "{}", "<>"):
        return None
    bare = _fonts.sub("", html.unescape(answer)).rstrip(".")
    if "\\text" in answer and bare.startswith("{") and bare.endswith("}"):
        bare = bare[1:-1]
    return bare == expected


def same_words(gold: str, answer: str) -> bool | None:
    """Whether both are the same words in one order, whatever parts them; None where the gold is no list of three words
    or more."""
    expected = " ".join(gold.split())
    if not _row.fullmatch(expected) or _FUNCTION.search(expected):
        return None
    return _parts(answer) == _parts(expected)


def _parts(text: str) -> list[str]:
    """The words of ``text`` in lower case; an apostrophe parts a word on either side alike."""
    return [part.lower() for part in _joint.split(_marks.sub(" ", text).strip(" .\n")) if part]
