"""A cleaned expression becomes exact algebra: a lexer and a recursive descent over LaTeX and plain notation.

What cannot be read is ``Unreadable``, which says nothing about being right. Depth, length and work are bounded.
"""

import re
from collections.abc import Callable, Set
from fractions import Fraction
from math import ceil, comb, factorial, floor

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient
from agent0.grading.math.angles import E, of_angle, turned

DEEPEST, LONGEST, MOST_DIGITS = 24, 400, 100
MOST_FACTORS = 5_000
"""Of a factorial that is computed."""


class UnreadableError(ValueError):
    """No expression, or none that is read here."""


_token = re.compile(
    r"\s*(?:(?P<sci>\d+(?:\.\d+)?[eE][-+]?\d{1,3}(?![\d.]))|(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])|\d+\.?\d*|\.\d+)"
    r"|(?P<command>\\[A-Za-z]+)|(?P<word>[A-Za-z]+)|(?P<sign>[-+*/^_(){}\[\]|!'])|(?P<other>\S))"
)
_mixed = re.compile(
    r"(\d+) (?:frac \{ (\d+) \} \{ (\d+) \}|frac (\d)(\d)(?!\d)|frac (\d) (\d)(?!\d)|(\d+) / (\d+)(?![\d.]))(?= |$)"
)
"""Tokens of a mixed number, joined by spaces."""
FUNCTIONS = {"sin", "cos", "tan", "cot", "sec", "csc", "log", "ln", "exp", "arcsin", "arccos", "arctan", "sinh", "cosh"}
GREEK = {
    "alpha", "beta", "gamma", "delta", "theta", "lambda", "mu", "phi", "varphi", "omega", "sigma", "rho", "epsilon"
}  # fmt: skip
_PLAIN = {"pi": "pi", "sqrt": "sqrt", **{name: name for name in FUNCTIONS}}
_NO_FACTORS = {"cdot", "times", "div", "over", "pm", "mp", "cup", "cap", "rfloor", "rceil"}
Token = tuple[str, str]
Letters = Set[str] | None
"""Letters of which runs may be products; None: all."""


def read(text: str, letters: Letters = None) -> Quotient:
    """The value of ``text``. Runs of letters are products of variables; ``letters`` are those that may form one.

    Raises:
        UnreadableError: it is no expression.
        TooLargeError: it is one that is not computed.
    """
    if len(text) > LONGEST:
        raise UnreadableError("too long")
    reader = _Reader(_tokens(text, letters))
    try:
        value = reader.sum(0)
        value = reader.over(value)
    except (algebra.UndefinedError, ZeroDivisionError) as error:
        raise UnreadableError(str(error)) from error
    if reader.left:
        raise UnreadableError(f"{reader.left[0][1]!r} is out of place")
    return value


def _tokens(text: str, letters: Letters) -> list[Token]:
    out: list[Token] = []
    depth = 0
    for found in _token.finditer(text):
        kind, word = found.lastgroup or "other", found[found.lastgroup or 0]
        if kind == "other":
            raise UnreadableError(f"{word!r} is no part of an expression")
        if kind in ("number", "sci") and len(word) > MOST_DIGITS:
            raise UnreadableError("too many digits")
        depth += (word in ("(", "[")) - (word in (")", "]"))
        if "," in word and (depth > 0 or out[-1:] == [("sign", "|")]):
            raise UnreadableError("several values in brackets, where one is wanted")
        if kind == "command":
            out.append(("name", word[1:]))
        elif kind == "word":
            out += _letters(word, letters)
        else:
            out.append((kind, word))
    return out


def _letters(word: str, letters: Letters) -> list[Token]:
    """A run of letters: a known name, or a product of single letters."""
    for name in sorted(_PLAIN, key=len, reverse=True):
        if word.startswith(name):
            return [("name", name), *(_letters(word[len(name) :], letters) if word[len(name) :] else [])]
    if len(word) > 1 and (len(word) > 4 or (letters is not None and not set(word) <= letters)):
        raise UnreadableError(f"the word {word[:40]!r}")
    return [("letter", letter) for letter in word]


class _Reader:
    """What is left to be read. One method a rule; ``depth`` counts nesting."""

    def __init__(self, tokens: list[Token]) -> None:
        self.left = tokens[::-1]
        self.left.reverse()

    def _peek(self) -> Token:
        return self.left[0] if self.left else ("end", "")

    def _take(self) -> Token:
        if not self.left:
            raise UnreadableError("it ends too early")
        return self.left.pop(0)

    def _accept(self, *words: str) -> str:
        if self.left and self.left[0][0] in ("sign", "name") and self.left[0][1] in words:
            return self.left.pop(0)[1]
        return ""

    def _expect(self, word: str) -> None:
        if self._take()[1] != word:
            raise UnreadableError(f"{word!r} is missing")

    def sum(self, depth: int) -> Quotient:
        if depth > DEEPEST:
            raise UnreadableError("nested too deeply")
        sign = self._sign()
        value = self._product(depth)
        value = algebra.negative(value) if sign < 0 else value
        while word := self._accept("+", "-"):
            sign = self._sign() * (-1 if word == "-" else 1)
            term = self._product(depth)
            value = algebra.add(value, algebra.negative(term) if sign < 0 else term)
        return value

    def _sign(self) -> int:
        sign = 1
        while word := self._accept("+", "-"):
            sign = -sign if word == "-" else sign
        return sign

    def _product(self, depth: int) -> Quotient:
        numeral = self._numeral()
        value = self._mixed() or self._factor(depth)
        while True:
            if word := self._accept("*", "cdot", "times", "/", "div"):
                sign, numeral = self._sign(), self._numeral()
                factor = self._factor(depth)
                factor = algebra.inverse(factor) if word in ("/", "div") else factor
                value = algebra.multiply(value, algebra.negative(factor) if sign < 0 else factor)
            elif self._begins():
                if numeral and self._numeral():
                    raise UnreadableError("two numbers side by side are no product")
                numeral = self._numeral()
                value = algebra.multiply(value, self._factor(depth))
            else:
                return value

    def _numeral(self) -> bool:
        """Whether what comes is a number in figures, in braces or not."""
        kinds = [kind for kind, _ in self.left[:3]]
        if self.left[1:2] == [("sign", "!")]:
            return False
        braced = [word for _, word in self.left[:3:2]] == ["{", "}"] and kinds[1] == "number"
        return braced or (bool(kinds) and kinds[0] in ("number", "sci"))

    def _begins(self) -> bool:
        kind, word = self._peek()
        if kind in ("number", "sci", "letter"):
            return True
        if kind == "name":
            return word not in _NO_FACTORS
        return word in ("(", "{", "[") and kind == "sign"

    def _mixed(self) -> Quotient | None:
        r"""``1\frac{4}{5}`` and ``1 4/5``: a whole number beside a fraction of whole numbers is their sum."""
        words = " ".join(word for _, word in self.left[:8])
        match = _mixed.match(words)
        if match is None:
            return None
        above, below = (int(part) for part in match.groups()[1:] if part is not None)
        if below == 0:
            return None
        del self.left[: len(match[0].split())]
        return algebra.number(int(match[1]) + Fraction(above, below))

    def _factor(self, depth: int) -> Quotient:
        base = self._atom(depth)
        while self._accept("!"):
            base = _factorial(base)
        if self._accept("^"):
            exponent = self._argument(depth, signed=True)
            return turned(exponent) or algebra.power(base, exponent) if base == E else algebra.power(base, exponent)
        return base

    def _atom(self, depth: int) -> Quotient:
        kind, word = self._take()
        if kind in ("number", "sci"):
            return algebra.number(Fraction(word.replace(",", "")) + self._repeating(word))
        if kind == "letter":
            return algebra.symbol(self._indexed(word, depth))
        if kind == "name":
            return self._named(word, depth)
        if word == "{":
            return self._group(depth)
        if word == "|":
            value = self.sum(depth + 1)
            self._expect("|")
            return _magnitude(value)
        closing = {"(": ")", "[": "]"}.get(word)
        if closing is None:
            raise UnreadableError(f"{word!r} is out of place")
        value = self.sum(depth + 1)
        self._expect(closing)
        return value

    def _repeating(self, before: str) -> Fraction:
        r"""What ``\overline{27}`` adds behind the decimals of ``0.\overline{27}``."""
        if "." not in before or not self._accept("overline", "bar"):
            return Fraction(0)
        self._expect("{")
        digits = self._take()[1]
        self._expect("}")
        if not digits.isdigit():
            raise UnreadableError("no digits repeat")
        place = 10 ** len(before.partition(".")[2])
        return Fraction(int(digits), place * (10 ** len(digits) - 1))

    def _group(self, depth: int) -> Quotient:
        r"""The inside of braces; ``{a \over b}`` too."""
        value = self.over(self.sum(depth + 1), depth + 1)
        self._expect("}")
        return value

    def over(self, value: Quotient, depth: int = 0) -> Quotient:
        r"""``value \over`` what follows; ``value`` where nothing does."""
        if not self._accept("over"):
            return value
        return algebra.multiply(value, algebra.inverse(self.sum(depth)))

    def _indexed(self, name: str, depth: int) -> str:
        """``x_1`` is a variable of its own."""
        if not self._accept("_"):
            return name
        return f"{name}_{algebra.key(self._argument(depth))}"

    def _named(self, word: str, depth: int) -> Quotient:
        if word == "frac":
            above = self._argument(depth)
            return algebra.multiply(above, algebra.inverse(self._argument(depth)))
        if word == "sqrt":
            return self._sqrt(depth)
        if word == "binom":
            return _binomial(self._argument(depth), self._argument(depth))
        if word in ("lfloor", "lceil"):
            value = self.sum(depth + 1)
            self._expect(f"r{word[1:]}")
            return _whole(value, floor if word == "lfloor" else ceil)
        if word in FUNCTIONS:
            return self._function(word, depth)
        if word in ("pi", "infty") or word in GREEK:
            return algebra.symbol(word)
        raise UnreadableError(f"the command {word!r}")

    def _sqrt(self, depth: int) -> Quotient:
        degree = Fraction(2)
        if self._accept("["):
            value = algebra.rational(self.sum(depth + 1))
            self._expect("]")
            if value is None or value.denominator != 1 or not 1 < value < 50:
                raise UnreadableError("a root of an unusual degree")
            degree = value
        inside = self._atom(depth + 1) if self._peek()[0] == "number" else self._argument(depth)
        return algebra.power(inside, algebra.number(1 / degree))

    def _argument(self, depth: int, signed: bool = False) -> Quotient:
        r"""What belongs to a command: a group, or the next digit (``\frac12``) or atom."""
        if depth > DEEPEST:
            raise UnreadableError("nested too deeply")
        if signed and (sign := self._sign_word()):
            value = self._argument(depth + 1, signed)
            return algebra.negative(value) if sign == "-" else value
        kind, word = self._peek()
        if kind == "number" and not signed and len(word) > 1 and word.isdigit():
            self.left[0] = ("number", word[1:])
            return algebra.number(int(word[0]))
        return self._atom(depth + 1)

    def _sign_word(self) -> str:
        return self._accept("-", "+")

    def _function(self, name: str, depth: int) -> Quotient:
        exponent = self._argument(depth, signed=True) if self._accept("^") else None
        base = self._argument(depth) if name == "log" and self._accept("_") else None
        inside = self._inside(depth)
        value = _function(name if base is None else f"log[{algebra.key(base)}]", inside)
        return value if exponent is None else algebra.power(value, exponent)

    def _inside(self, depth: int) -> Quotient:
        r"""The argument: in brackets, or the product up to the next sign or function (``\cot 2x``)."""
        if self._peek() in (("sign", "("), ("sign", "{"), ("sign", "[")):
            return self._atom(depth + 1)
        value = self._factor(depth + 1)
        while self._peek()[0] in ("number", "letter") or self._peek() == ("name", "pi"):
            value = algebra.multiply(value, self._factor(depth + 1))
        return value


def _function(name: str, inside: Quotient) -> Quotient:
    """Quotients of sine and cosine for the other four; ln and log alike."""
    sine, cosine = (algebra.symbol(f"{f}({algebra.key(inside)})") for f in ("sin", "cos"))
    if name == "exp":
        return turned(inside) or algebra.power(E, inside)
    if name in ("sin", "cos", "tan", "cot", "sec", "csc") and (exact := of_angle(name, inside)) is not None:
        return exact
    forms = {
        "tan": lambda: algebra.multiply(sine, algebra.inverse(cosine)),
        "cot": lambda: algebra.multiply(cosine, algebra.inverse(sine)),
        "sec": lambda: algebra.inverse(cosine),
        "csc": lambda: algebra.inverse(sine),
    }
    return forms[name]() if name in forms else algebra.symbol(f"{name}({algebra.key(inside)})")


def _binomial(above: Quotient, below: Quotient) -> Quotient:
    n, k = algebra.rational(above), algebra.rational(below)
    if n is None or k is None or n.denominator * k.denominator != 1 or not 0 <= k <= n <= MOST_FACTORS:
        raise UnreadableError("a binomial that is not computed")
    return algebra.number(comb(int(n), int(k)))


def _whole(value: Quotient, to: Callable[[Fraction], int]) -> Quotient:
    inside = algebra.rational(value)
    if inside is None:
        raise UnreadableError("the whole part of what is no rational")
    return algebra.number(to(inside))


def _magnitude(value: Quotient) -> Quotient:
    """Of a number; ``|x|`` is a base of its own, and so is its square root."""
    inside = algebra.rational(value)
    if inside is not None:
        return algebra.number(abs(inside))
    return algebra.symbol(f"abs({min(algebra.key(value), algebra.key(algebra.negative(value)))})")


def _factorial(base: Quotient) -> Quotient:
    value = algebra.rational(base)
    if value is None or value.denominator != 1 or not 0 <= value <= MOST_FACTORS:
        raise UnreadableError("a factorial that is not computed")
    return algebra.number(factorial(int(value)))
