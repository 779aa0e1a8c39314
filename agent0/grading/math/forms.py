"""What kind of answer a text is: number or expression, list, set, tuple or interval, union, matrix, equation, relation,
number in a base, choice, or words. The top level is cut at brackets and commas; what is between is read as algebra."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from agent0.chat_format import COMMANDS
from agent0.grading.literals import enclosed, is_literal
from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient
from agent0.grading.math.lexer import Letters, UnreadableError
from agent0.grading.math.parser import read

MOST_ITEMS = 200


@dataclass(frozen=True)
class Expression:
    """A value; ``infinite`` is its sign where it is infinite, ``literal`` whether it is written out."""

    value: Quotient
    infinite: int = 0
    literal: bool = field(default=True, compare=False)


@dataclass(frozen=True)
class Group:
    """Several values. ``list`` and ``set`` have no order; ``tuple`` keeps its brackets (so intervals are tuples);
    ``union`` and ``intersection`` join tuples and sets; ``row`` and ``matrix`` nest."""

    kind: Literal["list", "set", "tuple", "union", "intersection", "row", "matrix"]
    items: tuple["Form", ...]
    brackets: str = ""


@dataclass(frozen=True)
class Relation:
    """``left sign right``. ``variable`` is the left side where that is one name or a tuple of names."""

    sign: str
    left: "Form"
    right: "Form"
    variable: str = ""


@dataclass(frozen=True)
class Based:
    """A number written in a base: its digits as text, and the base."""

    digits: str
    base: int


@dataclass(frozen=True)
class Words:
    """An answer that is text, case-folded, with single spaces between its words."""

    text: str


Form = Expression | Group | Relation | Based | Words

_MATRIX = re.compile(
    r"^(\(|\[|\\?\||)\s*\\begin\{([bpvBV]?matrix|smallmatrix|array)\}(?:\s*\{[clr|]+\})?(.*)\\end\{\2\}\s*(\)|\]|\\?\||)$",
    re.S,
)
_FENCES = {("", ""): "", ("(", ")"): "", ("[", "]"): "", ("|", "|"): "|", (r"\|", r"\|"): "||"}
_BARS = {"vmatrix": "|", "Vmatrix": "||"}
_BASES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_BASED = re.compile(rf"^\(?\s*([0-9A-Fa-f]+)\s*\)?\s*_\s*\{{?\s*(\d{{1,2}}|{'|'.join(_BASES)})\s*\}}?$")
_GREEK = "theta|alpha|beta|gamma|delta|lambda|mu|phi|omega|sigma|rho"
NAME = (
    rf"(?:m\s*)?(?:\\angle\s*[A-Z]{{1,3}}|[A-Za-z]|[A-Z]{{2,3}}|\\(?:{_GREEK}))(?:_\{{?\w+\}}?)?'{{0,2}}(?:\([a-z]\))?"
    r"|\(\s*[a-z](?:\s*,\s*[a-z])+\s*\)"
)
_VARIABLE = re.compile(NAME)
_COMPUTED = re.compile(r"(?<=.)[-+*/^!]|\\(?:frac|cdot|times|div|sqrt|binom)")
_MARKUP = re.compile(
    rf"\\(?:text)?color\{{\w+\}}|\\(?:underline|emph|{COMMANDS}|large|Large|huge)(?![A-Za-z])"
    r"|\\(?:textsc|textup|textmd|mathtt|mathnormal|bf|it|rm|bfseries|itshape)(?![A-Za-z])|[{}$]|\\(?![A-Za-z])"
)
_NUMBER = re.compile(r"^[-+]?\s*\d{1,3}(,\d{3})+(\.\d+)?$")
_sign = re.compile(r"\\le(?![A-Za-z])|\\ge(?![A-Za-z])|\\ne(?![A-Za-z])|\\in(?![A-Za-z])|<=|>=|!=|[<>=]")
_JOIN = re.compile(r"\\cup(?![A-Za-z])|\\cap(?![A-Za-z])")
_OPEN, _CLOSE = "([{", ")]}"


def form_of(text: str, letters: Letters = None) -> Form:
    """The form of cleaned ``text``; words where nothing else fits. ``letters``: see ``reading.read``."""
    return _known_form(text, None if letters is None else frozenset(letters))


@lru_cache(maxsize=1024)
def _known_form(text: str, letters: frozenset[str] | None) -> Form:
    """``form_of``, kept: one answer is compared in several readings, and one gold with many answers."""
    try:
        return _form(text.strip(), letters, 0)
    except UnreadableError:
        return Words(fold(text))


def fold(text: str) -> str:
    """Words without case, markup, quotes, doubled space and the stop at the end; commands stay, they mean something."""
    plain = _MARKUP.sub(" ", text)
    lower = "".join(part if part[:1] == "\\" else part.casefold() for part in re.split(r"(\\[A-Za-z]+)", plain))
    return " ".join(lower.split()).rstrip(" .,;:!").strip(" \"'")


def _form(text: str, letters: Letters, depth: int) -> Form:
    if depth > 8 or not text:
        raise UnreadableError("nothing" if not text else "nested too deeply")
    if match := _BASED.match(text):
        base = match[2]
        return Based(match[1].upper().lstrip("0") or "0", _BASES.get(base) or int(base))
    if text == r"\emptyset":
        return Group("set", ())
    if match := _MATRIX.match(text):
        fence = _FENCES.get((match[1], match[4]))
        if fence is None or (fence and match[2] in _BARS):
            raise UnreadableError("bars or brackets that do not match")
        return _matrix(text, match[3], fence or _BARS.get(match[2], ""), letters, depth)
    for reader in (_relation, _joined, _bracketed, _listed, _plus_minus, _ratio):
        if (form := reader(text, letters, depth)) is not None:
            return form
    return _expression(text, letters)


def _expression(text: str, letters: Letters) -> Form:
    infinite = re.fullmatch(r"([-+]?)\s*\\?(?:infty|infinity|oo)", text)
    if infinite:
        return Expression(algebra.number(0), -1 if infinite[1] == "-" else 1)
    return Expression(read(text, letters), literal=is_literal(text))


def _matrix(text: str, body: str, bars: str, letters: Letters, depth: int) -> Form:
    """With ``bars`` it is its determinant or norm, which is no matrix."""
    if bars == "|":
        try:
            return Expression(read(text, letters), literal=False)
        except UnreadableError:
            pass
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?", body) if row.strip() and row.strip() != r"\hline"]
    if len(rows) > 20:
        raise UnreadableError("a large matrix")
    read_rows = (tuple(_form(cell.strip(), letters, depth + 1) for cell in row.split("&")) for row in rows)
    return Group("matrix", tuple(Group("row", cells) for cells in read_rows), bars)


def _outside(text: str) -> Iterator[int]:
    """Indices of characters outside of all brackets. Half-open intervals close with either bracket."""
    depth = 0
    for place, letter in enumerate(text):
        escaped = place > 0 and text[place - 1] == "\\"
        if letter in _OPEN or (letter == "{" and escaped):
            depth += 1
        elif letter in _CLOSE:
            depth -= 1
            if depth < 0:
                raise UnreadableError("brackets that do not match")
        elif depth == 0:
            yield place
    if depth:
        raise UnreadableError("brackets that do not match")


def _relation(text: str, letters: Letters, depth: int) -> Form | None:
    outside = set(_outside(text))
    signs = [found for found in _sign.finditer(text) if found.start() in outside]
    if not signs:
        return None
    if (value := _computed(text, signs, letters)) is not None:
        return value
    if len(signs) > 1:
        return _several(text, signs, letters, depth)
    sign = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne"}.get(signs[0][0], signs[0][0])
    left, right = text[: signs[0].start()].strip(), text[signs[0].end() :].strip()
    variable = left.replace(" ", "") if _VARIABLE.fullmatch(left) else ""
    inside = _form(right, letters, depth + 1)
    before = _left_side(left, variable, sign, letters, depth)
    return Relation(sign, before, inside, _own_name(before) or variable)


def _left_side(text: str, variable: str, sign: str, letters: Letters, depth: int) -> Form:
    is_name = variable and (sign == r"\in" or not variable.isalpha() or len(variable) > 1)
    try:
        form = _form(text, letters, depth + 1)
    except (UnreadableError, algebra.TooLargeError):
        if is_name:
            return Words(variable)
        raise
    return Words(variable) if is_name and not _own_name(form) else form


def _own_name(form: Form) -> str:
    """The name of what is no product of letters, empty where ``form`` is anything else."""
    name = next(iter(form.value.bases), "") if isinstance(form, Expression) else ""
    is_name = name.startswith("N_") and isinstance(form, Expression) and form.value == algebra.symbol(name)
    return name if is_name else ""


def _several(text: str, signs: list[re.Match[str]], letters: Letters, depth: int) -> Form:
    """``x = 1, x = 2`` is a list, ``a < x < b`` an interval."""
    if len(signs) == 2 and (chain := _chain(text, signs, letters, depth)):
        return chain
    parts = _parts(text)
    if len(parts) == len(signs) and len(parts) > 1:
        return Group("list", tuple(_form(part, letters, depth + 1) for part in parts))
    raise UnreadableError("several relations")


def _computed(text: str, signs: list[re.Match[str]], letters: Letters) -> Form | None:
    """``3 \\cdot 4 = 12`` is 12, ``x = 3 \\cdot 4 = 12`` is x = 12, where each step is true; ``12 = 12`` is neither."""
    if {sign[0] for sign in signs} != {"="} or ("," in text and len(_parts(text)) > 1):
        return None
    ends = [0, *(place for sign in signs for place in sign.span()), len(text)]
    sides = [text[start:end].strip() for start, end in zip(ends[::2], ends[1::2], strict=True)]
    name = sides.pop(0) if _VARIABLE.fullmatch(sides[0]) else ""
    if len(sides) < 2 or not all(_COMPUTED.search(side) for side in sides[:-1]) or len(set(sides)) < len(sides):
        return None
    values = [read(side, letters) for side in sides]
    if values[-1].bases or not all(algebra.same(value, values[-1]) for value in values):
        return None
    last = Expression(values[-1], literal=is_literal(sides[-1]))
    variable = name.replace(" ", "")
    return Relation("=", Words(variable), last, variable) if name else last


def _chain(text: str, signs: list[re.Match[str]], letters: Letters, depth: int) -> Form | None:
    first, second = ({"<=": r"\le", ">=": r"\ge"}.get(sign[0], sign[0]) for sign in signs)
    low, middle, high = (
        part.strip()
        for part in (text[: signs[0].start()], text[signs[0].end() : signs[1].start()], text[signs[1].end() :])
    )
    if not _VARIABLE.fullmatch(middle) or not ({first, second} <= {"<", r"\le"} or {first, second} <= {">", r"\ge"}):
        return None
    ends = [(low, first), (high, second)]
    (left, opening), (right, closing) = ends if first in ("<", r"\le") else ends[::-1]
    brackets = ("(" if opening in "<>" else "[") + (")" if closing in "<>" else "]")
    interval = Group("tuple", (_form(left, letters, depth + 1), _form(right, letters, depth + 1)), brackets)
    variable = middle.replace(" ", "")
    return Relation(r"\in", Words(variable), interval, variable)


def _ratio(text: str, letters: Letters, depth: int) -> Form | None:
    """``3:4`` and ``1:2:3``; times of day too."""
    parts = text.split(":") if ":" in text and "{" not in text else []
    if not 2 <= len(parts) <= 6:
        return None
    return Group("tuple", tuple(_form(part.strip(), letters, depth + 1) for part in parts), "::")


def _joined(text: str, letters: Letters, depth: int) -> Form | None:
    outside = set(_outside(text))
    joins = [found for found in _JOIN.finditer(text) if found.start() in outside]
    kinds = {found[0] for found in joins}
    if not joins or len(kinds) > 1:
        return None
    cuts = [0, *(place for found in joins for place in (found.start(), found.end())), len(text)]
    items = [text[start:end] for start, end in zip(cuts[::2], cuts[1::2], strict=True)]
    kind: Literal["union", "intersection"] = "union" if kinds == {r"\cup"} else "intersection"
    return Group(kind, tuple(_form(item.strip(), letters, depth + 1) for item in items))


def _bracketed(text: str, letters: Letters, depth: int) -> Form | None:
    if text.startswith(r"\{") and text.endswith(r"\}"):
        inside = text[2:-2].strip()
        return Group("set", _members(_cut(inside), letters, depth) if inside else ())
    if text[0] not in "([" or text[-1] not in ")]" or not enclosed(text):
        return None
    parts = _cut(text[1:-1])
    if len(parts) < 2:
        return None
    items = tuple(_form(part, letters, depth + 1) for part in parts)
    return Group("tuple", items, text[0] + text[-1])


def _listed(text: str, letters: Letters, depth: int) -> Form | None:
    parts = _parts(text)
    if len(parts) < 2:
        return None
    return Group("list", _items(text, letters, depth))


def _items(text: str, letters: Letters, depth: int) -> tuple[Form, ...]:
    return _members(_parts(text), letters, depth)


def _members(parts: list[str], letters: Letters, depth: int) -> tuple[Form, ...]:
    if len(parts) > MOST_ITEMS:
        raise UnreadableError("a long list")
    flat: list[Form] = []
    for part in parts:
        form = _form(part, letters, depth + 1)
        flat += form.items if isinstance(form, Group) and form.kind == "list" else [form]
    return tuple(flat)


def _parts(text: str) -> list[str]:
    """What ``_cut`` says; numbers with thousands stay whole."""
    return [text] if _NUMBER.match(text) else _cut(text)


def _cut(text: str) -> list[str]:
    """Cut at commas, semicolons and the words and, or outside of brackets."""
    outside = set(_outside(text))
    cuts = [
        (m.start(), m.end()) for m in re.finditer(r",\s*(?:and|or)\s|[,;]|\s(?:and|or)\s", text) if m.start() in outside
    ]
    ends = [0, *(place for cut in cuts for place in cut), len(text)]
    return [text[start:end].strip() for start, end in zip(ends[::2], ends[1::2], strict=True)]


def _plus_minus(text: str, letters: Letters, depth: int) -> Form | None:
    found = list(re.finditer(r"\\(?:pm|mp)(?![A-Za-z])", text))
    if len(found) != 1:
        return None
    before, after = text[: found[0].start()], text[found[0].end() :]
    both = (f"{before}{sign}{after}" for sign in "+-")
    return Group("list", tuple(_form(one.strip(), letters, depth + 1) for one in both))
