"""Chains of equations: the last side is what the others come to."""

import re

from agent0.grading.math.algebra import same
from agent0.grading.notation.names import arguments, value_of

LONGEST = 400
_sign = re.compile(r"(?<![<>!:=\\])=(?![=>])")
_relation = re.compile(
    r"[<>=≤≥≠≈≡]|\\(?:le|ge|leq|geq|ne|neq|lt|gt|in|equiv|approx|cases|to|rightarrow)(?![A-Za-z])|\\begin\{cases\}"
)
_other = re.compile(
    r"[<>≤≥≠≡]|\\(?:le|ge|leq|geq|ne|neq|lt|gt|in|equiv|leqslant|geqslant|bmod|pmod|mod|not)(?![A-Za-z])"
    r"|[A-Za-z]{3,}\s+[A-Za-z]{2,}\s"
)
_nearly = re.compile(r"\s*(?:\\approx(?![A-Za-z])|≈|\\simeq(?![A-Za-z]))\s*")
_rounded = re.compile(r"10\s*\^|\d[eE][-+]?\d")
_text = re.compile(r"\\(?:text|mathrm|textrm|mbox)\s*\{[^{}]*\}")
_named = re.compile(r"[A-Za-z]|\\[A-Za-z]+|…")
_operators = re.compile(
    r"\\(?:frac|dfrac|tfrac|cdot|times|div|left|right|sqrt|binom|pm|over|quad|qquad|begin|end)(?![A-Za-z])"
)
_thousands = re.compile(r"(?<=\d)(?:\{,\}|,(?=\d{3}(?!\d)))")
_second = re.compile(r"(?:(?<!\\)[,;]|\band\b|\bor\b|\})\s*(?:\\q?quad\s*)?[A-Za-z]\w?\s*$")
_based, _ratio = re.compile(r"_\s*\{?\d+\}?\s*\)?$"), re.compile(r"^[^:a-z]+(?::[^:a-z]+)+$")
_counted = re.compile(r"\\[dt]?binom(?![A-Za-z])")
_letter = re.compile(r"\s*[A-Za-z](?:_\{?\w+\}?)?\s*")
_sides = re.compile(r"(?<![<>!:\\])=(?!=)")
_starred = re.compile(r"\*\*([A-Za-z])\*\*")


def last_side(gold: str, answer: str) -> str:
    """Return what ``answer`` comes to where it is a chain ``f(x) = a = b`` and the gold is a value; the gold's own name
    with the last side where the gold is an equation. Else ``answer``: arithmetic alone (``3 + 3 = 7``) is compared step
    by step elsewhere."""
    if len(answer) > LONGEST or ("=" not in answer and not _nearly.search(answer)):
        return answer
    if _rounded.search(gold) and not _nearly.search(gold) and len(parts := _nearly.split(answer)) == 2:
        answer = f"{parts[0]} = {parts[1]}" if parts[0] else answer
    sides = [side.strip() for side in arguments(answer, _sign)]
    if len(sides) < 2 or _other.search(answer) or r"\begin{cases}" in answer:
        return answer
    if _relation.search(gold):
        name, *others = (gold.partition("=")[0], *sides[:-1])
        is_named = gold.count("=") == 1 and not any(map(_second.search, sides[1:-1]))
        is_chain = is_named and "".join(name.split()) in ("".join(side.split()) for side in others)
        return f"{name.strip()} = {sides[-1].rstrip('. ')}" if is_chain else answer
    if not all(sides) or not _steady(gold, sides):
        return answer
    if any(sign.search(gold) and sign.search(sides[-1]) for sign in (_based, _ratio)):
        return sides[-1]
    if (_lettered(sides[0]) or _counted.search(sides[0])) and not _second.search(sides[-2]):
        return sides[-1].rstrip(". ")
    return _thousands.sub("", answer) if "," in sides[-1] else answer


def _steady(gold: str, sides: list[str]) -> bool:
    """Whether no step of it is wrong as far as it can be read, and the first side is no variable of the gold."""
    if len(sides[0]) == 1 and re.search(rf"(?<![A-Za-z\\]){re.escape(sides[0])}(?![A-Za-z])", gold):
        return False
    values = [value_of(_thousands.sub("", side)) for side in sides[1:]]
    if None in values or any(name.startswith("N_") for value in values if value for name in value.names):
        return True
    return len(values) < 2 or all(same(one, values[-1]) for one in values if one and values[-1])


def _lettered(side: str) -> bool:
    """Whether ``side`` names something, so that it is no arithmetic."""
    return bool(_named.search(_operators.sub(" ", _text.sub(" x ", side))))


def one_side(text: str, gold: str) -> str:
    r"""Return of ``a \approx b`` the side that the gold asks for: the rounded one where the gold is a decimal. Of a
    mere name, as in ``x \approx b``, nothing exact is said: that stays no value."""
    if "**" in text and ("mathbf" in gold or "vec" in gold):
        text = _starred.sub(r"\\mathbf{\1}", text)
    if _nearly.search(gold) or not (nearly := _nearly.search(text)):
        return text
    if not nearly.start() or _letter.fullmatch(text[: nearly.start()]):
        return text
    return text[nearly.end() :] if "." in gold else text[: nearly.start()]


def turned_alike(gold: str, answer: str) -> tuple[str, str]:
    """Return the answer with its sides turned round where one of them is the gold's other side."""
    expected, found = _sides.split(gold), _sides.split(answer)
    if len(expected) == len(found) == 2:
        (left, right), (ours, theirs) = (["".join(side.split()) for side in sides] for sides in (expected, found))
        if ours != left and theirs != right and (ours == right or theirs == left):
            return gold, f"{found[1]} = {found[0]}"
    return gold, answer
