"""What is no product of letters gets a name of its own: functions, primes, differentials, angles, cross products,
factorials. A name stands for its normal form, so equal things have equal names and nothing else does.
"""

import hashlib
import math
import re
from collections.abc import Callable
from fractions import Fraction

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient, TooLargeError
from agent0.grading.math.cleaning import clean, closing
from agent0.grading.math.parser import MOST_FACTORS, UnreadableError, read

MOST, DEEPEST, LARGEST = 40, 6, 10**6
MOST_WRITTEN = 50
"""The largest double factorial that is computed; the parser computes the others."""
_prime = re.compile(r"\^\s*\{?\s*((?:\\prime\s*)+)\}?")
_inverse = re.compile(r"\\?(sin|cos|tan|cot|sec|csc|sinh|cosh|tanh)\s*\^\s*(?:\{\s*-\s*1\s*\}|-1(?!\d))")
_short = re.compile(r"\\?(?<![A-Za-z])a(?:rc?)?(sin|cos|tan|sinh|cosh|tanh)(?![A-Za-z])")
_wrapped = re.compile(r"\\(?:operatorname\*?|text|mathrm)\s*\{\s*([A-Za-z]{2,8})\s*\}(?=\s*[({\\A-Za-z0-9])")
_d = r"(?:(?:\\mathrm\s*\{d\}|\\partial|d)(?:\^\{?\d\}?)?\s*(?:[A-Za-z]|\\[a-z]+)?(?:\^\{?\d\}?)?)"
_differential = re.compile(
    rf"\\[dt]?frac\s*\{{\s*({_d})\s*\}}\s*\{{\s*({_d})\s*\}}|(?<![A-Za-z\\])({_d})\s*/\s*({_d})(?![A-Za-z])"
)
_angle = re.compile(
    r"(?<![A-Za-z])(?:m\s*)?\\(angle|triangle|vec|overrightarrow)\s*(?:\{\s*([A-Z]{1,4})\s*\}|([A-Z]{1,4})(?![A-Za-z]))"
)
_vector = r"\\(?:mathbf|boldsymbol|bm|pmb|vec|overrightarrow)\s*(?:\{\s*([A-Za-z])\s*\}|([A-Za-z])(?![A-Za-z]))"
_cross = re.compile(rf"{_vector}\s*\\times\s*{_vector}")
_applied = re.compile(r"(?<![A-Za-z\\])([A-Za-z])\s*('*)\s*(\^\s*\{?\s*-\s*1\s*\}?)?\s*\(")
_primed = re.compile(r"(?<![A-Za-z\\])([A-Za-z])\s*('+)(?![A-Za-z])")
_known = re.compile(
    r"\\?(?<![A-Za-z])(gcd|lcm|max|min|arcsinh|arccosh|arctanh|arccot|arcsec|arccsc|det)(?![A-Za-z])\s*(?:\(|\{|([A-Za-z0-9]))"
)
_COMPUTED: dict[str, Callable[..., int]] = {"gcd": math.gcd, "lcm": math.lcm, "max": max, "min": min}
_choose = re.compile(r"\\[dt]?binom(?![A-Za-z])\s*")
_WANTED = re.compile(
    r"[('!]|prime|partial|\\(?:binom|dbinom|tbinom|angle|triangle|vec|overrightarrow|times)|\^|d[a-z]/|arc|frac|a(?:sin|cos|tan)|gcd|lcm|max|min"
)


def named(text: str, depth: int = 0) -> str:
    """Return ``text`` with a name for each of these; unchanged where there is none or too many."""
    if depth > DEEPEST or not _WANTED.search(text):
        return text
    text = _prime.sub(lambda f: "'" * f[1].count("prime"), text)
    text = _inverse.sub(r"\\arc\1 ", _wrapped.sub(r"\\\1", text))
    text = _short.sub(r"\\arc\1 ", text)
    text = _differential.sub(lambda f: name(f"{_tight(f[1] or f[3])}/{_tight(f[2] or f[4])}"), text)
    text = _cross.sub(lambda f: name(f"cross {f[1] or f[2]} {f[3] or f[4]}"), text)
    text = _angle.sub(_corner, text)
    for step in (_binomials, _applications, _functions, _factorials):
        text = step(text, depth)
    return _primed.sub(lambda f: name(f[1] + f[2]), text)


def name(meaning: str) -> str:
    """Return a variable that stands for ``meaning``, the same one each time."""
    return f" N_{{{int.from_bytes(hashlib.sha256(meaning.encode()).digest()[:6])}}} "


def _tight(text: str) -> str:
    return re.sub(r"\\mathrm\{d\}", "d", re.sub(r"[\s{}]", "", text) if "mathrm" not in text else text.replace(" ", ""))


def _corner(match: re.Match[str]) -> str:
    """An angle is named by its vertex and two sides, in either direction."""
    what, points = match[1], match[2] or match[3]
    if what == "angle":
        points = min(points, points[::-1])
    return name(f"{'vector' if what in ('vec', 'overrightarrow') else what} {points}")


def value_of(text: str) -> Quotient | None:
    """The exact value of ``text``, None where it cannot be read."""
    try:
        return read(clean(text).text)
    except (UnreadableError, TooLargeError):
        return None


def key_of(text: str) -> str:
    """The normal form of ``text``; where it cannot be read, ``text`` without spaces."""
    value = value_of(text)
    return "".join(text.split()) if value is None else algebra.key(value)


def bracketed(text: str, start: int) -> int:
    """Index of the bracket that closes the one at ``start``, -1 where none does."""
    if text[start] == "{":
        return closing(text, start)
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in "([") - (text[place] in ")]")
        if depth == 0:
            return place
    return -1


def arguments(text: str) -> list[str]:
    """Cut ``text`` at the commas outside of its brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        parts = [*parts, ""] if letter == "," and not depth else [*parts[:-1], parts[-1] + letter]
    return parts


def _applications(text: str, depth: int) -> str:
    place = 0
    for _ in range(MOST):
        if (match := _applied.search(text, place)) is None or (end := bracketed(text, match.end() - 1)) < 0:
            return text
        letter, marks, inside = match[1], match[2] + ("^-1" if match[3] else ""), text[match.end() : end]
        simple = re.fullmatch(r"\s*(?:[a-z]|-?\d+)\s*", inside)
        given = letter == "P" and re.search(r"\||\\mid|\\[lr]?vert", inside)
        if letter in "fg" or (letter in "hFGH" and simple) or (marks and letter in "fghFGHyuvpq") or given:
            answer = re.sub(r"\\(?:mid|[lr]?vert)", "|", inside) if given else named(inside, depth + 1)
            keys = ",".join(map(key_of, arguments(answer)))
            made = name(f"{letter}{marks}({keys})")
            text, place = text[: match.start()] + made + text[end + 1 :], match.start() + len(made)
        else:
            place = match.end()
    return text


def _functions(text: str, depth: int) -> str:
    """Functions of several numbers, and those that exact comparison does not know."""
    for _ in range(MOST):
        if (match := _known.search(text)) is None:
            return text
        end = match.end() - 1 if match[2] else bracketed(text, match.end() - 1)
        if end < 0:
            return text
        inside = match[2] or text[match.end() : end]
        parts = [named(part, depth + 1) for part in arguments(inside)]
        values = [_integer(part) for part in parts]
        if match[1] in _COMPUTED and len(values) > 1 and None not in values:
            made = f" ({_COMPUTED[match[1]](*values)}) "
        else:
            keys = [key_of(part) for part in parts]
            made = name(f"{match[1]}({','.join(sorted(keys) if match[1] in _COMPUTED else keys)})")
        text = text[: match.start()] + made + text[end + 1 :]
    return text


def _integer(text: str) -> int | None:
    value = value_of(text)
    number = None if value is None else algebra.rational(value)
    return int(number) if number is not None and number.denominator == 1 else None


def _binomials(text: str, depth: int) -> str:
    r"""``\binom{n}{k}`` as a number, or by factorials."""
    for _ in range(MOST):
        if (match := _choose.search(text)) is None:
            return text
        above, after = _group(text, match.end())
        below, end = _group(text, after)
        if not above or not below:
            return text
        n, k = _integer(above), _integer(below)
        if n is not None and k is not None:
            if not (0 <= k <= n <= LARGEST and (min(k, n - k) <= 300 or n <= MOST_FACTORS)):
                return text
            if n <= MOST_FACTORS and min(k, n - k) > MOST_WRITTEN:
                return text
            made = f" ({math.comb(n, k)}) "
        else:
            made = f"\\frac{{({above})!}}{{({below})!(({above})-({below}))!}}"
        text = text[: match.start()] + made + text[end:]
    return text


def _group(text: str, start: int) -> tuple[str, int]:
    """A group in braces, or the next character, from ``start`` on; and where it ends."""
    start += len(text[start:]) - len(text[start:].lstrip())
    if text[start : start + 1] != "{":
        return text[start : start + 1], start + 1
    end = closing(text, start)
    return (text[start + 1 : end], end + 1) if end >= 0 else ("", start)


def _factorials(text: str, depth: int) -> str:
    r"""``n!!`` as a number where ``n`` is one, and ``n!`` of a letter as a name; ``(n+2)!`` as ``(n+1)(n+2)n!``."""
    place = 0
    for _ in range(MOST):
        place = text.find("!", place)
        if place <= 0:
            return text
        start = _operand(text, place)
        double = text[place + 1 : place + 2] == "!"
        made = _factorial(text[start:place], double) if start >= 0 else None
        if made is None:
            place += 1 + double
            continue
        text, place = f"{text[:start]} {made} {text[place + 1 + double :]}", start + len(made)
    return text


def _operand(text: str, end: int) -> int:
    """Where the operand before ``end`` begins: digits, a letter, a name, or brackets; -1 where there is none."""
    body = text[:end].rstrip()
    if body.endswith(")"):
        depth = 0
        for place in range(len(body) - 1, -1, -1):
            depth += (body[place] == ")") - (body[place] == "(")
            if depth == 0:
                return place
        return -1
    match = re.search(r"(?:\d+|(?<![A-Za-z\\])[A-Za-z]|N_\{\d+\})$", body)
    return match.start() if match else -1


def _factorial(operand: str, double: bool) -> str | None:
    value = value_of(operand)
    if value is None:
        return None
    number = algebra.rational(value)
    if number is not None:
        if not double or number.denominator != 1 or not 0 <= number <= MOST_WRITTEN:
            return None
        return f"({math.prod(range(int(number), 0, -2))})"
    shift = value.above.get(algebra.ONE, Fraction(0)) if set(value.below) == {algebra.ONE} else Fraction(0)
    if double or shift.denominator != 1 or abs(shift) > 8:
        return name(f"{algebra.key(value)}{'!!' if double else '!'}")
    rest = algebra.add(value, algebra.number(-shift))
    base = f"(({operand})-({int(shift)}))"
    factors = range(1, int(shift) + 1) if shift > 0 else range(int(shift) + 1, 1)
    whole = "".join(f"({base}+({n}))" for n in factors) or "1"
    return (
        f"({name(algebra.key(rest) + '!')}{whole})"
        if shift > 0
        else f"\\frac{{{name(algebra.key(rest) + '!')}}}{{{whole}}}"
    )
