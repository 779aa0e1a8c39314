r"""A cleaned expression becomes exact algebra: a recursive descent over LaTeX and plain notation.

What is no product of letters (``f(x)``, ``y'``, ``dy/dx``) is a variable of its own, named by its normal form.
What cannot be read is ``Unreadable``, which says nothing about being right. Depth, length and work are bounded.
"""

import math
import operator
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce

from agent0.grading.math import algebra, lexer
from agent0.grading.math.algebra import Applied, Quotient, opaque
from agent0.grading.math.applied import E, binomial, exponential, factorial, function, magnitude, rounded
from agent0.grading.math.lexer import Cursor, Letters, Token, UnreadableError, tokens_of

DEEPEST, LONGEST, MOST_TERMS, LARGEST_MATRIX = 24, 400, 300, 5
"""Levels and characters of an expression, terms of its sums and products, rows of a determinant."""
_mixed = re.compile(
    r"(\d+) (?:frac \{ (\d+) \} \{ (\d+) \}|frac (\d)(\d)(?!\d)|frac (\d) (\d)(?!\d)|(\d+) / (\d+)(?![\d.]))(?= |$)"
)
"""Tokens of a mixed number, joined by spaces."""
_NO_FACTORS = {
    "cdot", "times", "div", "over", "pm", "mp", "cup", "cap", "rfloor", "rceil", "to", "rightarrow", "bmod", "mod"
}  # fmt: skip
_FUNCTION_LETTERS, _SIMPLE_FUNCTIONS, _PRIMED_FUNCTIONS = "fg", "hFGH", "fghFGHyuvpq"
"""Letters that are functions before a bracket: always, before one letter or number, and where they are primed."""


def read(text: str, letters: Letters = None) -> Quotient:
    """The value of ``text``. Runs of letters are products of variables; ``letters`` are those that may form one.

    Raises:
        UnreadableError: it is no expression.
        TooLargeError: it is one that is not computed.
    """
    if len(text) > LONGEST:
        raise UnreadableError("too long")
    try:
        return _whole(tokens_of(text, letters), {}, [MOST_TERMS], 0)
    except (algebra.UndefinedError, ZeroDivisionError) as error:
        raise UnreadableError(str(error)) from error


def _whole(tokens: Sequence[Token], values: Mapping[str, Quotient], budget: list[int], depth: int) -> Quotient:
    """The value of all of the tokens."""
    reader = _Reader(tokens, values, budget)
    value = reader.over(reader.sum(depth), depth)
    if reader.position < len(reader.tokens):
        raise UnreadableError(f"{reader.tokens[reader.position][1]!r} is out of place")
    return value


class _Reader(Cursor):
    """One method a rule; ``depth`` counts nesting. ``values`` are those of bound variables."""

    def __init__(self, tokens: Sequence[Token], values: Mapping[str, Quotient], budget: list[int]) -> None:
        super().__init__(tokens)
        self.values, self.budget = values, budget

    def sum(self, depth: int) -> Quotient:
        """Read terms with signs between them."""
        if depth > DEEPEST:
            raise UnreadableError("nested too deeply")
        value = self._signed_product(depth)
        while lexeme := self.accept("+", "-"):
            term = self._signed_product(depth)
            value = value + term if lexeme == "+" else value - term
        if self.accept("bmod", "mod"):
            whole, modulus = algebra.whole(value), algebra.whole(self._product(depth))
            if whole is None or not modulus:
                raise UnreadableError("a remainder of what is no whole number")
            return algebra.number(whole % modulus)
        return value

    def _signed_product(self, depth: int) -> Quotient:
        sign = self._sign()
        value = self._product(depth)
        return -value if sign < 0 else value

    def _sign(self) -> int:
        sign = 1
        while lexeme := self.accept("+", "-"):
            sign = -sign if lexeme == "-" else sign
        return sign

    def _product(self, depth: int) -> Quotient:
        numeral = self._numeral()
        value = self._mixed() or self._factor(depth)
        while True:
            if lexeme := self.accept("*", "cdot", "times", "/", "div"):
                sign, numeral = self._sign(), self._numeral()
                factor = self._factor(depth) if sign > 0 else -self._factor(depth)
                value = value / factor if lexeme in ("/", "div") else value * factor
            elif self._begins():
                if numeral and self._numeral():
                    raise UnreadableError("two numbers side by side are no product")
                numeral = self._numeral()
                value = value * self._factor(depth)
            else:
                return value

    def _numeral(self) -> bool:
        """Whether what comes is a number in figures, in braces or not."""
        (kind, lexeme), after = self.peek(), self.peek(1)
        if after == ("sign", "!"):
            return False
        braced = lexeme == "{" and after[0] == "number" and self.peek(2)[1] == "}"
        return braced or kind in ("number", "sci")

    def _begins(self) -> bool:
        kind, lexeme = self.peek()
        if kind == "sign":
            return lexeme in ("(", "{", "[")
        return kind != "end" and not (kind == "name" and lexeme in _NO_FACTORS)

    def _mixed(self) -> Quotient | None:
        r"""``1\frac{4}{5}`` and ``1 4/5``: a whole number beside a fraction of whole numbers is their sum."""
        if self.peek()[0] != "number" or self.peek(1)[0] not in ("name", "number"):
            return None
        match = _mixed.match(" ".join(lexeme for _, lexeme in self.tokens[self.position : self.position + 8]))
        if match is None:
            return None
        above, below = (int(part) for part in match.groups()[1:] if part is not None)
        if below == 0:
            return None
        self.position += len(match[0].split())
        return algebra.number(int(match[1]) + Fraction(above, below))

    def _factor(self, depth: int) -> Quotient:
        base = self._atom(depth)
        while self.accept("!"):
            base = factorial(base, 2 if self.accept("!") else 1)
        if self.accept("^"):
            exponent = self._argument(depth, signed=True)
            return exponential(exponent) if base == E else base**exponent
        return base

    def _atom(self, depth: int) -> Quotient:
        kind, lexeme = self.take()
        match kind:
            case "number" | "sci":
                return algebra.number(Fraction(lexeme.replace(",", "")) + self._repeating(lexeme))
            case "letter":
                return self._letter(lexeme, depth)
            case "name":
                return self._named(lexeme, depth)
            case "opaque":
                return algebra.symbol(opaque(lexeme))
            case "slope":
                variable = algebra.symbol(lexeme)
                return algebra.symbol(Applied("slope", self._product(depth + 1), variable, variable, variable))
            case "determinant":
                return self._determinant(lexeme, depth)
        closing = {"(": ")", "[": "]", "|": "|", "{": "}"}.get(lexeme)
        if closing is None:
            raise UnreadableError(f"{lexeme!r} is out of place")
        value = self.sum(depth + 1)
        value = self.over(value, depth + 1) if lexeme == "{" else value
        self.expect(closing)
        return magnitude(value) if lexeme == "|" else value

    def _repeating(self, before: str) -> Fraction:
        r"""What ``\overline{27}`` adds behind the decimals of ``0.\overline{27}``."""
        if "." not in before or not self.accept("overline", "bar"):
            return Fraction(0)
        self.expect("{")
        digits = self.take()[1]
        self.expect("}")
        if not digits.isdigit():
            raise UnreadableError("no digits repeat")
        scale = 10 ** len(before.partition(".")[2])
        return Fraction(int(digits), scale * (10 ** len(digits) - 1))

    def over(self, value: Quotient, depth: int) -> Quotient:
        r"""``value \over`` what follows; ``value`` where nothing does."""
        return value / self.sum(depth) if self.accept("over") else value

    def _letter(self, name: str, depth: int) -> Quotient:
        """A variable, ``x_1`` and ``y'`` too; a bound one's value; a function with its argument."""
        if name in self.values:
            return self.values[name]
        if (applied := self._application(name, depth)) is not None:
            return algebra.symbol(opaque(applied))
        if self.peek() == ("sign", "'"):
            return algebra.symbol(opaque(name + self.marks()))
        return algebra.symbol(f"{name}_{algebra.key(self._argument(depth))}" if self.accept("_") else name)

    def _application(self, name: str, depth: int) -> str | None:
        """What ``f(x)``, ``f'(x)``, ``f^{-1}(x)`` or ``P(A|B)`` means, None where brackets are a factor."""
        start, marks = self.position, self.marks()
        for inverse in (("^", "{", "-", "1", "}"), ("^", "-", "1")):
            if tuple(lexeme for _, lexeme in self.tokens[self.position : self.position + len(inverse)]) == inverse:
                self.position, marks = self.position + len(inverse), f"{marks}^-1"
                break
        end = self.closing() if self.peek() == ("sign", "(") else -1
        inside = self.tokens[self.position + 1 : end]
        lexemes = [lexeme for _, lexeme in inside]
        is_simple = len(lexemes) == 1 and (inside[0][0] == "letter" or lexemes[0].isdigit())
        conditional = name == "P" and ("|" in lexemes or "mid" in lexemes)
        is_function = name in _FUNCTION_LETTERS or (name in _SIMPLE_FUNCTIONS and is_simple)
        if end < 0 or not (is_function or conditional or (marks and name in _PRIMED_FUNCTIONS)):
            self.position = start
            return None
        return f"{name}{marks}({','.join(self._key(argument, depth + 1) for argument in self.arguments())})"

    def _key(self, argument: list[Token], depth: int) -> str:
        """The normal form of an argument; where it cannot be read, its text without spaces."""
        value = self._value(argument, depth)
        return "".join(lexeme for _, lexeme in argument) if value is None else algebra.key(value)

    def _value(self, tokens: Sequence[Token], depth: int) -> Quotient | None:
        if depth > DEEPEST:
            raise UnreadableError("nested too deeply")
        try:
            return _whole(tokens, self.values, self.budget, depth)
        except (UnreadableError, algebra.UndefinedError, ZeroDivisionError):
            return None

    def _named(self, lexeme: str, depth: int) -> Quotient:
        read = {"frac": self._frac, "sqrt": self._sqrt, "binom": self._binom}.get(lexeme)
        if read is not None:
            return read(depth)
        for names, read_name in (
            (("lfloor", "lceil"), self._rounded),
            (lexer.FUNCTIONS, self._function),
            ({*lexer.OF_NUMBERS, *lexer.INVERSE, "det"}, self._of_several),
            (lexer.OPERATORS, self._operator),
        ):
            if lexeme in names:
                return read_name(lexeme, depth)
        if lexeme in ("pi", "infty") or lexeme in lexer.GREEK:
            return algebra.symbol(lexeme)
        raise UnreadableError(f"the command {lexeme!r}")

    def _frac(self, depth: int) -> Quotient:
        above = self._argument(depth)
        return above / self._argument(depth)

    def _binom(self, depth: int) -> Quotient:
        return binomial(self._argument(depth), self._argument(depth))

    def _rounded(self, name: str, depth: int) -> Quotient:
        value = self.sum(depth + 1)
        self.expect(f"r{name[1:]}")
        return rounded(value, math.floor if name == "lfloor" else math.ceil)

    def _sqrt(self, depth: int) -> Quotient:
        degree: int | None = 2
        if self.accept("["):
            degree = algebra.whole(self.sum(depth + 1))
            self.expect("]")
            if degree is None or not 1 < degree < 50:
                raise UnreadableError("a root of an unusual degree")
        inside = self._atom(depth + 1) if self.peek()[0] == "number" else self._argument(depth)
        return inside ** algebra.number(Fraction(1, degree))

    def _argument(self, depth: int, signed: bool = False) -> Quotient:
        r"""What belongs to a command: a group, or the next digit (``\frac12``) or atom."""
        if depth > DEEPEST:
            raise UnreadableError("nested too deeply")
        if signed and (sign := self.accept("-", "+")):
            value = self._argument(depth + 1, signed)
            return -value if sign == "-" else value
        kind, lexeme = self.peek()
        if kind == "number" and not signed and len(lexeme) > 1 and lexeme.isdigit():
            self.tokens = [*self.tokens[: self.position], ("number", lexeme[1:]), *self.tokens[self.position + 1 :]]
            return algebra.number(int(lexeme[0]))
        return self._atom(depth + 1)

    def _function(self, name: str, depth: int) -> Quotient:
        exponent = self._argument(depth, signed=True) if self.accept("^") else None
        base = self._argument(depth) if name == "log" and self.accept("_") else None
        if exponent is not None and name in lexer.WITH_INVERSE and algebra.rational(exponent) == -1:
            name, exponent = f"arc{name}", None
        if name in lexer.INVERSE - lexer.FUNCTIONS:
            return algebra.symbol(opaque(f"{name}({algebra.key(self._inside(depth))})"))
        value = function(name, self._inside(depth), base)
        return value if exponent is None else value**exponent

    def _inside(self, depth: int) -> Quotient:
        r"""The argument: in brackets, or the product up to the next sign or function (``\cot 2x``)."""
        if self.peek() in (("sign", "("), ("sign", "{"), ("sign", "[")):
            return self._atom(depth + 1)
        value = self._factor(depth + 1)
        while self.peek()[0] in ("number", "letter") or self.peek() == ("name", "pi"):
            value = value * self._factor(depth + 1)
        return value

    def _of_several(self, name: str, depth: int) -> Quotient:
        """A greatest divisor and the like of whole numbers; of anything else a variable of its own."""
        if self.peek()[1] not in ("(", "{"):
            if self.peek()[0] not in ("letter", "number"):
                raise UnreadableError(f"{name!r} of nothing")
            before, after = self.tokens[: self.position], self.tokens[self.position + 1 :]
            self.tokens = [*before, ("sign", "("), self.peek(), ("sign", ")"), *after]
        arguments = self.arguments()
        values = [self._value(argument, depth + 1) for argument in arguments]
        numbers = [None if value is None else algebra.whole(value) for value in values]
        if name in lexer.OF_NUMBERS and len(numbers) > 1 and None not in numbers:
            return algebra.number(lexer.OF_NUMBERS[name](*numbers))
        keys = [self._key(argument, depth + 1) for argument in arguments]
        return algebra.symbol(opaque(f"{name}({','.join(sorted(keys) if name in lexer.OF_NUMBERS else keys)})"))

    def _determinant(self, text: str, depth: int) -> Quotient:
        body = re.split(r"\\(?:begin|end)\s*\{[a-z]*\}", text)[1]
        rows = [row.split("&") for row in body.split(r"\\") if row.strip()]
        if len({len(rows), *map(len, rows)}) != 1 or len(rows) > LARGEST_MATRIX:
            raise UnreadableError("no determinant")
        cells = [[_whole(tokens_of(cell, None), self.values, self.budget, depth + 1) for cell in row] for row in rows]
        return _determinant(cells)

    def _operator(self, name: str, depth: int) -> Quotient:
        """A sum, product, integral or limit: the number of a few terms, or a base that has its value at points."""
        self.expect("_")
        if name == "int":
            low = self._argument(depth, signed=True)
            self.expect("^")
            return self._integral(low, self._argument(depth, signed=True), depth)
        self.expect("{")
        kind, variable = self.take()
        self.expect(*(["="] if name != "lim" else []))
        if kind != "letter" or (name == "lim" and not self.accept("to", "rightarrow")):
            raise UnreadableError("no variable")
        low = high = self.sum(depth + 1)
        while name == "lim" and self.accept("^", "+", "-", "{"):
            self.accept("}")
        self.expect("}")
        if name != "lim":
            self.expect("^")
            high = self._argument(depth, signed=True)
        first, body = self.position, self._body(depth, {variable: algebra.symbol(variable)})
        start, stop = algebra.whole(low), algebra.whole(high)
        if name == "lim" or start is None or stop is None or not start <= stop < start + MOST_TERMS:
            return algebra.symbol(Applied(name, body, algebra.symbol(variable), low, high))
        terms = (self._term(first, depth, {variable: algebra.number(n)}) for n in range(start, stop + 1))
        return reduce(operator.add if name == "sum" else operator.mul, terms)

    def _body(self, depth: int, values: Mapping[str, Quotient]) -> Quotient:
        """The product that comes next, where variables have ``values``."""
        before, self.values = self.values, {**self.values, **values}
        try:
            return self._signed_product(depth + 1)
        finally:
            self.values = before

    def _term(self, first: int, depth: int, values: Mapping[str, Quotient]) -> Quotient:
        self.budget[0] -= 1
        if self.budget[0] < 0:
            raise UnreadableError("too many terms")
        self.position = first
        return self._body(depth, values)

    def _integral(self, low: Quotient, high: Quotient, depth: int) -> Quotient:
        for end in range(self.position, len(self.tokens) - 1):
            (kind, variable), before = self.tokens[end + 1], self.tokens[self.position : end]
            if self.tokens[end] == ("letter", "d") and kind == "letter":
                self.position = end + 2
                bound = algebra.symbol(variable)
                values = {**self.values, variable: bound}
                body = _whole(before, values, self.budget, depth + 1) if before else algebra.number(1)
                return algebra.symbol(Applied("int", body, bound, low, high))
        raise UnreadableError("no variable")


def _determinant(rows: Sequence[Sequence[Quotient]]) -> Quotient:
    """The determinant of a square matrix, along its first row."""
    if not rows:
        return algebra.number(1)
    total = algebra.number(0)
    for position, entry in enumerate(rows[0]):
        minor = _determinant([[*row[:position], *row[position + 1 :]] for row in rows[1:]])
        total = total - entry * minor if position % 2 else total + entry * minor
    return total
