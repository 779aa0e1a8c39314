"""Answers that are sequences of signs or words: brackets that close others, words put in order."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import html
import re

_fonts = re.compile(
    r"\\(?:text(?:tt|bf|rm|it)?|math(?:tt|rm)|mbox|verb)\s*(?=\{)|\\[ ,;:!]|[$`\s,'\"]|\\(?=[{}\[\]()<>])"
)
_brackets = re.compile(r"[()\[\]{}<>]+")
_words = re.compile(r"[a-z][a-z'-]*(?: [a-z][a-z'-]*){2,}")
_marks = re.compile(
    r"\\(?:text(?:bf|rm|it)?|mathrm|mbox)\s*\{|[\[\]{}()\"'“”‘’`*_$]|(?:^|\s)(?:[-•+*]|\d{1,2}[.)])\s+", re.MULTILINE
)
_joint = re.compile(r"\s*(?:,\s*(?:and\s+|then\s+)?|;|\n|→|->|=>|<|>|\|)\s*|\s+and\s+|\s+")
_FUNCTION = re.compile(r"\b(?:the|a|an|is|are|was|of|to|in|on|no|not|it|there|for|with|by|that|this|all|does|do)\b")


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
    if not _words.fullmatch(expected) or _FUNCTION.search(expected):
        return None
    return _parts(answer) == _parts(expected)


def _parts(text: str) -> list[str]:
    """The words of ``text`` in lower case; an apostrophe parts a word on either side alike."""
    return [part.lower() for part in _joint.split(_marks.sub(" ", text).strip(" .\n")) if part]
