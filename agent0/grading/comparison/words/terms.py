"""Answers in words: nothing, yes or no with a reason, a name in a sentence, brackets."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import html
import re

_markup = re.compile(
    r"\\(?:(?:text|math|operatorname)(?:bf|rm|it|sf|tt)?|mbox)(?![A-Za-z])|\\(?![A-Za-z{}])[ ,;:!]?|(?<!\\)[{}]|[$*`_]"
)
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
    r"|(?:it is |the system is )?inconsistent|empty|(?:the )?(?:solution )?set is empty|\\?\{\s*\\?\}",
    re.IGNORECASE,
)
_truth = re.compile(r"(yes|no|true|false)\b", re.IGNORECASE)
_reason = re.compile(
    r"\s*(?:[.!]?|(?:[,.;:!-]|because|since|as)(?!\s*(?:yes|no|or|and|true|false)\b)\s.*)\s*", re.IGNORECASE | re.DOTALL
)
_quotes = "\"'“”‘’«»„‹›"
_sentence = re.compile(
    r"(?:(?:so|thus|hence|therefore),? )?(?:(?:it|this|that|(?:the|this) (?:answer|result|\w+)(?: here)?)(?: is|['’]s"
    r"| must be) )?(?:(?:always|deductively|logically|formally|clearly|therefore|thus) )?(?:(?:an?|the|on) )?(not )?"
    r"([a-z'-]+)(?: (?:functions?|numbers?|integers?|triangles?|matrix|graphs?|sequences?|series|angles?"
    r"|quadrilaterals?|relations?|argument))?"
)
_OPPOSITES = {"valid": "invalid", "invalid": "valid"}
_name = re.compile(r"[A-Za-z][A-Za-z'-]{2,}(?: [A-Za-z][A-Za-z'-]*){0,3}")
_fonts = re.compile(
    r"\\(?:text(?:tt|bf|rm|it)?|math(?:tt|rm)|mbox|verb)\s*(?=\{)|\\[ ,;:!]|[$`\s,'\"]|\\(?=[{}\[\]()<>])"
)
_brackets = re.compile(r"[()\[\]{}<>]+")


def without_markup(text: str) -> str:
    """Return ``text`` without fonts and signs of markup, single spaces between its words."""
    return " ".join(_markup.sub(" ", text).split())


def same_nothing(gold: str, answer: str) -> bool | None:
    """Whether ``answer`` says in other words that there is nothing, as the gold does; None where the gold does not, or
    where ``answer`` says neither."""
    expected = _nothing(gold)
    return True if expected and expected == _nothing(answer) else None


def _nothing(text: str) -> str:
    is_braced = re.fullmatch(r"\\?\{\s*\\?\}", text.strip(" .!"))
    bare = "{}" if is_braced else without_markup(text.replace('"', " ")).strip(" .!")
    is_member = not is_braced and re.match(r"[\s$]*\\?\{", text)
    if is_member or bare.lower() in ("no", "none of these", "not"):
        return ""
    return "undefined" if _UNDEFINED.fullmatch(bare) else "none" if _NONE.fullmatch(bare) else ""


def same_truth(gold: str, answer: str) -> bool | None:
    """Whether ``answer`` says the gold's yes or no, with a reason behind it or not; None where the gold is neither."""
    bare = without_markup(answer)
    expected, truth = _truth.fullmatch(without_markup(gold).strip(" .")), _truth.match(bare)
    if expected is None or truth is None or not _reason.fullmatch(bare[truth.end() :]):
        return None
    return expected[1].lower() == truth[1].lower()


def same_word(gold: str, answer: str) -> bool | None:
    """True where ``answer`` is the gold's words, in quotation marks, another case or a sentence; None otherwise."""
    expected = without_markup(gold).strip(" .").casefold()
    bare = without_markup(answer).strip(" .").strip(_quotes).casefold()
    sentence = _sentence.fullmatch(bare)
    term = (_OPPOSITES.get(sentence[2], "") if sentence[1] else sentence[2]) if sentence else ""
    return True if _name.fullmatch(expected) and expected in (bare, term) else None


def same_brackets(gold: str, answer: str) -> bool | None:
    """Whether both are one sequence of brackets; None where the gold is none, or a pair of brackets with nothing in
    it."""
    expected = "".join(gold.split())
    if not _brackets.fullmatch(expected) or expected in ("()", "[]", "{}", "<>"):
        return None
    bare = _fonts.sub("", html.unescape(answer)).rstrip(".")
    return expected in (
        bare,
        bare[1:-1] if "\\text" in answer and bare.startswith("{") and bare.endswith("}") else bare,
    )
