"""When a symbolic engine may be asked. It drops what it does not know and takes rounded numbers for exact ones, so it
is asked only about what it is known to read whole: never about a bare sign, a finite decimal, or a word."""

import re

from agent0.grading.math.forms import NAME, Expression, Form, Relation, Words
from agent0.grading.math.lexer import FUNCTIONS, GREEK

_COSTLY = [
    re.compile(pattern)
    for pattern in (
        r"\^[^ ]{0,8}\^",
        r"\^\s*\{?\s*-?\d{3}",
        r"!",
        r"\\(?:int|sum|prod|lim)",
        r"__|import|lambda",
        r".{200}",
    )
]
_KNOWN = {
    *FUNCTIONS, *GREEK, "frac", "sqrt", "pi", "infty", "cdot", "times", "div", "binom", "over", "pm", "mp", "cup",
    "cap", "lfloor", "rfloor", "lceil", "rceil", "begin", "end",
}  # fmt: skip
_BUILT = re.compile(r"\\(?:int|sum|prod|lim|begin|log|binom)(?![A-Za-z])")
"""What the engine reads and exact comparison may not."""
_NAMED = re.compile(rf"({NAME})\s*=\s*([^=<>]+)")
_SIGN = re.compile(r"\\(?:le|ge|ne|in)(?![A-Za-z])|[<>=]")
_BOUND = re.compile(r"_\s*\{\s*[a-z]\s*=")
_PAIR = re.compile(r"[(\[][^()\[\]]*,")
_FLOAT = re.compile(r"\.|\d[eE][-+]?\d")
_UNFINISHED = re.compile(r"[-+*/^_,]\s*$|^\s*[*/^_,]|[-+*/^_]\s*[*/^_)\]}]|\(\s*\)|\[\s*\]")
_MATRIX = re.compile(r"\\(?:begin|end)\{(?:[bp]?matrix|array)\}(?:\{[clr]+\})?")
_PLAIN = frozenset("0123456789+-*/^_(){}[]|,&\\ ")


def costly(expected: str, answer: str) -> bool:
    """Whether ``answer`` could keep a symbolic engine busy: what of this the gold does not have is no answer."""
    return any(pattern.search(answer) and not pattern.search(expected) for pattern in _COSTLY)


def question(expected: str, answer: str, aim: Form, form: Form) -> tuple[str, str] | None:
    """What to ask about two texts whose forms are not equal; None where exact comparison has the last word."""
    (name, right), (other, left) = _sides(expected, aim), _sides(answer, form)
    if other and name not in ("", other):
        return None
    aim, form = _value(aim), _value(form)
    if other and isinstance(aim, Expression) and other in aim.value.names:
        return None
    if _settled(aim, form) or costly(right, left) or not _whole(right, left):
        return None
    return right, left


def _sides(text: str, form: Form) -> tuple[str, str]:
    """(name, what it is) of ``x = 5``; no name where it is no equation of this kind."""
    if isinstance(form, Relation) and form.sign == "=" and form.variable:
        return form.variable, text.partition("=")[2].strip()
    match = _NAMED.fullmatch(text) if isinstance(form, Relation | Words) else None
    return (match[1].replace(" ", ""), match[2].strip()) if match else ("", text)


def _value(form: Form) -> Form:
    return form.right if isinstance(form, Relation) and form.sign == "=" and form.variable else form


def _settled(aim: Form, form: Form) -> bool:
    """Whether exact comparison has the last word: both were read and hold no function, or one is words alone."""
    if isinstance(aim, Words) and isinstance(form, Expression):
        return not _BUILT.search(aim.text)
    if isinstance(aim, Words):
        return not isinstance(form, Words) or not re.search(r"[\\^_=+*/\d]", aim.text)
    if isinstance(form, Words):
        return not _BUILT.search(form.text)
    if not isinstance(aim, Expression) or not isinstance(form, Expression):
        return True
    return not any("(" in base for side in (aim, form) for base in side.value.bases)


def _whole(expected: str, answer: str) -> bool:
    """Whether the engine reads all of ``answer``, and no number of either in binary fractions."""
    if _FLOAT.search(expected) or _FLOAT.search(answer) or _UNFINISHED.search(answer):
        return False
    if sorted(_signs(answer)) != sorted(_signs(expected)) or (_PAIR.search(answer) and not _PAIR.search(expected)):
        return False
    if "\\begin" in expected and set("|'^") & (set(answer) - set(expected)):
        return False
    return _only_known(_MATRIX.sub(" ", expected), _MATRIX.sub(" ", answer))


def _signs(text: str) -> list[str]:
    """Relations, whichever way they point."""
    turned = {"\\ge": "\\le", ">": "<"}
    return [turned.get(sign, sign) for sign in _SIGN.findall(_BOUND.sub("", text))]


def _only_known(expected: str, answer: str) -> bool:
    """Whether each command, word and character is one that the engine knows or the gold has."""
    commands, theirs = (set(re.findall(r"\\([A-Za-z]+)", text)) for text in (answer, expected))
    bare, gold = (re.sub(r"\\[A-Za-z]+", " ", text) for text in (answer, expected))
    foreign = {run for run in re.findall(r"[A-Za-z]{2,}", bare) if not set(run) <= set(gold)}
    rest = set(re.sub(r"[A-Za-z]", "", bare)) - _PLAIN - set(gold)
    return not (commands - _KNOWN - theirs) and not (foreign - FUNCTIONS - {"sqrt", "pi"}) and not rest
