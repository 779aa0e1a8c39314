"""What kind of answer a text is: number or expression, list, set, tuple or interval, union, matrix, equation, relation,
number in a base, choice, or words. The top level is cut at brackets and commas; what is between is read as algebra."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from agent0.chat_format import COMMANDS
from agent0.grading.literals import enclosed, is_literal
from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient
from agent0.grading.math.lexer import GREEK, Letters, UnreadableError
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
NAME = (
    rf"(?:m\s*)?(?:\\angle\s*[A-Z]{{1,3}}|[A-Za-z]|[A-Z]{{2,3}}|\\(?:{'|'.join(GREEK)}))(?:_\{{?\w+\}}?)?'{{0,2}}(?:\([a-z]\))?"
    r"|\(\s*[a-z](?:\s*,\s*[a-z])+\s*\)"
)
_VARIABLE = re.compile(NAME)
_COMPUTED = re.compile(r"(?<=.)[-+*/^!]|\\(?:frac|cdot|times|div|sqrt|binom)|\\?(?:gcd|lcm|max|min)")
_MARKUP = re.compile(
    rf"\\(?:text)?color\{{\w+\}}|\\(?:underline|emph|{COMMANDS}|large|Large|huge)(?![A-Za-z])"
    r"|\\(?:textsc|textup|textmd|mathtt|mathnormal|bf|it|rm|bfseries|itshape)(?![A-Za-z])|[{}$]|\\(?![A-Za-z])"
)
_NUMBER = re.compile(r"[-+]?\s*\d{1,3}(,\d{3})+(\.\d+)?")
_SIGN = re.compile(r"\\(?:le|ge|ne|in)(?![A-Za-z])|<=|>=|!=|[<>=]")
_JOIN = re.compile(r"\\c[ua]p(?![A-Za-z])")
_REMOVED = re.compile(r"\\(?:setminus|backslash)(?![A-Za-z])")
_COMMA = re.compile(r",\s*(?:and|or)\s|[,;]|\s(?:and|or)\s")
_TWO_SIGNS = re.compile(r"\\(?:pm|mp)(?![A-Za-z])")
_LATEX = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne"}


def form_of(text: str, letters: Letters = None) -> Form:
    """The form of cleaned ``text``; words where nothing else fits. ``letters``: see ``reading.read``."""
    return _known_form(text, None if letters is None else frozenset(letters))


@lru_cache(maxsize=1024)
def _known_form(text: str, letters: frozenset[str] | None) -> Form:
    """``form_of``, kept: one answer is compared in several readings, and one gold with many answers."""
    try:
        return _FormReader(letters).form(text.strip(), 0)
    except UnreadableError:
        return Words(fold(text))


def fold(text: str) -> str:
    """Words without case, markup, quotes, doubled space and the stop at the end; commands stay, they mean something."""
    plain = _MARKUP.sub(" ", text)
    lower = "".join(part if part[:1] == "\\" else part.casefold() for part in re.split(r"(\\[A-Za-z]+)", plain))
    return " ".join(lower.split()).rstrip(" .,;:!").strip(" \"'")


def _split(text: str, pattern: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """Pieces of ``text`` between the matches of ``pattern`` outside of brackets, and these. Half-open intervals close
    with either bracket."""
    depths, depth = [], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            raise UnreadableError("brackets that do not match")
        depths.append(depth + (letter in ")]}"))
    if depth:
        raise UnreadableError("brackets that do not match")
    pieces, signs, start = [], [], 0
    for match in pattern.finditer(text):
        if depths[match.start()] == 0:
            pieces.append(text[start : match.start()].strip())
            signs.append(match[0])
            start = match.end()
    return [*pieces, text[start:].strip()], signs


def _parts(text: str) -> list[str]:
    """Cut at commas, semicolons and the words and, or outside of brackets; numbers with thousands stay whole."""
    return [text] if _NUMBER.fullmatch(text) else _split(text, _COMMA)[0]


def _variable(text: str) -> str:
    return text.replace(" ", "") if _VARIABLE.fullmatch(text) else ""


def _own_name(form: Form) -> str:
    """The name of what is no product of letters, empty where ``form`` is anything else."""
    name = next(iter(form.value.bases), "") if isinstance(form, Expression) else ""
    is_name = name.startswith("N_") and isinstance(form, Expression) and form.value == algebra.symbol(name)
    return name if is_name else ""


def _pierced(interval: Form, holes: Sequence[Form]) -> Form:
    """An interval without points inside of it: the union of what is left."""
    points = [algebra.rational(hole.value) for hole in holes if isinstance(hole, Expression) and not hole.infinite]
    is_interval = isinstance(interval, Group) and interval.kind == "tuple" and len(interval.items) == 2
    if not isinstance(interval, Group) or not is_interval or len(points) < len(holes) or None in points:
        raise UnreadableError("no points of an interval")
    low, high = interval.items
    inside = [Expression(algebra.number(point)) for point in sorted(point for point in points if point is not None)]
    ends = [low, *inside, high]
    if not all(map(_is_below, ends, ends[1:])):
        raise UnreadableError("points that are not inside of an interval")
    fences = [interval.brackets[0], *")(" * len(inside), interval.brackets[1]]
    pieces = zip(ends, ends[1:], fences[::2], fences[1::2], strict=False)
    return Group("union", tuple(Group("tuple", (start, end), left + right) for start, end, left, right in pieces))


def _is_below(left: Form, right: Form) -> bool:
    """Whether one rational or infinite end is less than another."""
    if not isinstance(left, Expression) or not isinstance(right, Expression) or left.infinite > 0 or right.infinite < 0:
        return False
    low, high = algebra.rational(left.value), algebra.rational(right.value)
    return bool(left.infinite or right.infinite) or (low is not None and high is not None and low < high)


class _FormReader:
    """One method a kind: a form, or None where the text is of another kind. ``letters``: see ``parser.read``."""

    def __init__(self, letters: Letters) -> None:
        self.letters = letters

    def form(self, text: str, depth: int) -> Form:
        """The form of ``text``.

        Raises:
            UnreadableError: it has none.
        """
        if depth > 8 or not text:
            raise UnreadableError("nothing" if not text else "nested too deeply")
        if match := _BASED.match(text):
            base = match[2]
            return Based(match[1].upper().lstrip("0") or "0", _BASES.get(base) or int(base))
        for reader in (
            self._matrix,
            self._relation,
            self._joined,
            self._bracketed,
            self._listed,
            self._plus_minus,
            self._ratio,
        ):
            if (form := reader(text, depth)) is not None:
                return form
        if infinite := re.fullmatch(r"([-+]?)\s*\\?(?:infty|infinity|oo)", text):
            return Expression(algebra.number(0), -1 if infinite[1] == "-" else 1)
        return Expression(read(text, self.letters), literal=is_literal(text))

    def _forms(self, texts: Sequence[str], depth: int) -> tuple[Form, ...]:
        return tuple(self.form(text.strip(), depth + 1) for text in texts)

    def _members(self, texts: Sequence[str], depth: int) -> tuple[Form, ...]:
        """``_forms`` with those of the lists among them."""
        if len(texts) > MOST_ITEMS:
            raise UnreadableError("a long list")
        flat: list[Form] = []
        for form in self._forms(texts, depth):
            flat += form.items if isinstance(form, Group) and form.kind == "list" else [form]
        return tuple(flat)

    def _matrix(self, text: str, depth: int) -> Form | None:
        """With bars it is its determinant, or a norm, which are no matrices."""
        if (match := _MATRIX.match(text)) is None:
            return None
        fence = _FENCES.get((match[1], match[4]))
        if fence is None or (fence and match[2] in _BARS):
            raise UnreadableError("bars or brackets that do not match")
        bars = fence or _BARS.get(match[2], "")
        if bars == "|":
            try:
                return Expression(read(text, self.letters), literal=False)
            except UnreadableError:
                pass
        rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?", match[3]) if row.strip() and row.strip() != r"\hline"]
        if len(rows) > 20:
            raise UnreadableError("a large matrix")
        return Group("matrix", tuple(Group("row", self._forms(row.split("&"), depth)) for row in rows), bars)

    def _relation(self, text: str, depth: int) -> Form | None:
        sides, signs = _split(text, _SIGN)
        if not signs:
            return None
        signs = [_LATEX.get(sign, sign) for sign in signs]
        if (value := self._computed(text, sides, signs)) is not None:
            return value
        if len(signs) > 1:
            return self._chain(sides, signs, depth) or self._relations(text, len(signs), depth)
        variable, right = _variable(sides[0]), self.form(sides[1], depth + 1)
        left = self._left_side(sides[0], variable, signs[0], depth)
        return Relation(signs[0], left, right, _own_name(left) or variable)

    def _left_side(self, text: str, variable: str, sign: str, depth: int) -> Form:
        is_name = variable and (sign == r"\in" or not variable.isalpha() or len(variable) > 1)
        try:
            form = self.form(text, depth + 1)
        except (UnreadableError, algebra.TooLargeError):
            if is_name:
                return Words(variable)
            raise
        return Words(variable) if is_name and not _own_name(form) else form

    def _relations(self, text: str, count: int, depth: int) -> Form:
        """``x = 1, x = 2`` as a list, ``1 < x < 3, x != 2`` as a union."""
        form = self._listed(text, depth) if 1 < len(_parts(text)) <= count else None
        if form is None:
            raise UnreadableError("several relations")
        return form

    def _computed(self, text: str, sides: Sequence[str], signs: Sequence[str]) -> Form | None:
        """``3 \\cdot 4 = 12`` is 12, ``x = 3 \\cdot 4 = 12`` is x = 12, where each step is true; ``12 = 12`` is
        neither."""
        if set(signs) != {"="} or ("," in text and len(_parts(text)) > 1):
            return None
        name = _variable(sides[0])
        steps = sides[1:] if name else sides
        if len(steps) < 2 or not all(map(_COMPUTED.search, steps[:-1])) or len(set(steps)) < len(steps):
            return None
        values = [read(step, self.letters) for step in steps]
        if values[-1].bases or not all(algebra.same(value, values[-1]) for value in values):
            return None
        last = Expression(values[-1], literal=is_literal(steps[-1]))
        return Relation("=", Words(name), last, name) if name else last

    def _chain(self, sides: Sequence[str], signs: Sequence[str], depth: int) -> Form | None:
        """``a < x < b`` as an interval."""
        variable = _variable(sides[1])
        upward, downward = set(signs) <= {"<", r"\le"}, set(signs) <= {">", r"\ge"}
        if len(signs) != 2 or not variable or not (upward or downward):
            return None
        step = 1 if upward else -1
        brackets = f"{'[('[signs[::step][0] in '<>']}{'])'[signs[::step][1] in '<>']}"
        interval = Group("tuple", self._forms((sides[0], sides[2])[::step], depth), brackets)
        return Relation(r"\in", Words(variable), interval, variable)

    def _ratio(self, text: str, depth: int) -> Form | None:
        """``3:4`` and ``1:2:3``; a time of day (``3:04``) is no ratio."""
        parts = text.split(":") if "{" not in text else []
        brackets = "0:" if any(re.match(r"\s*0\d", part) for part in parts[1:]) else "::"
        return Group("tuple", self._forms(parts, depth), brackets) if 2 <= len(parts) <= 6 else None

    def _joined(self, text: str, depth: int) -> Form | None:
        whole, *removed = _split(text, _REMOVED)[0]
        if len(removed) == 1 and removed[0].startswith(r"\{"):
            holes = self.form(removed[0], depth + 1)
            return _pierced(self.form(whole, depth + 1), holes.items if isinstance(holes, Group) else ())
        items, joins = _split(text, _JOIN)
        if len(set(joins)) != 1:
            return None
        return Group("union" if joins[0] == r"\cup" else "intersection", self._forms(items, depth))

    def _bracketed(self, text: str, depth: int) -> Form | None:
        if text == r"\emptyset":
            return Group("set", ())
        if text.startswith(r"\{") and text.endswith(r"\}"):
            inside = text[2:-2].strip()
            return Group("set", self._members(_split(inside, _COMMA)[0], depth) if inside else ())
        if text[0] not in "([" or text[-1] not in ")]" or not enclosed(text):
            return None
        parts = _split(text[1:-1], _COMMA)[0]
        return Group("tuple", self._forms(parts, depth), text[0] + text[-1]) if len(parts) > 1 else None

    def _listed(self, text: str, depth: int) -> Form | None:
        parts = _parts(text)
        if len(parts) < 2:
            return None
        items = self._members(parts, depth)
        match items:
            case (
                Relation(sign=r"\in", variable=name, right=interval),
                Relation(sign=r"\ne", variable=other, right=hole),
            ):
                return Relation(r"\in", Words(name), _pierced(interval, [hole]), name) if name == other else None
        return Group("list", items)

    def _plus_minus(self, text: str, depth: int) -> Form | None:
        if len(_TWO_SIGNS.findall(text)) != 1:
            return None
        return Group("list", self._forms([_TWO_SIGNS.sub(sign, text) for sign in "+-"], depth))
