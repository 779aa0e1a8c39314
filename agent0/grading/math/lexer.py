"""A cleaned expression cut into tokens: numbers, letters, names of functions and commands, signs.

What is no product of letters is one token: a rate of change, an angle, a vector of points, a determinant.
"""

import ast
import math
import re
from collections.abc import Callable, Sequence, Set

MOST_DIGITS = 100


class UnreadableError(ValueError):
    """No expression, or none that is read here."""


_rate = r"(?:\\partial|d)(?:\s*\^\s*\{?\s*\d\s*\}?)?\s*(?:[A-Za-z]|\\[a-z]+)?(?:\s*\^\s*\{?\s*\d\s*\}?)?"
_matrix = r"\\begin\s*\{[bp]?matrix\}.*?\\end\s*\{[bp]?matrix\}"
_token = re.compile(
    rf"\s*(?:(?P<rate>\\frac\s*\{{\s*{_rate}\s*\}}\s*\{{\s*{_rate}\s*\}}|(?<![A-Za-z\\]){_rate}\s*/\s*{_rate}(?![A-Za-z]))"
    rf"|(?P<determinant>\\det\s*\(?\s*{_matrix}\s*\)?|\\begin\s*\{{vmatrix\}}.*?\\end\s*\{{vmatrix\}}|\|\s*{_matrix}\s*\|)"
    r"|(?P<corner>(?:(?<![A-Za-z])m\s*)?\\(?:angle|triangle|vec|overrightarrow)\s*(?:\{\s*[A-Z]{1,4}\s*\}|[A-Z]{1,4}(?![A-Za-z])))"
    r"|(?P<prime>\^\s*\{?\s*(?:\\prime\s*)+\}?)"
    r"|(?P<sci>\d+(?:\.\d+)?[eE][-+]?\d{1,3}(?![\d.]))|(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])|\d+\.?\d*|\.\d+)"
    r"|(?P<command>\\[A-Za-z]+)|(?P<word>[A-Za-z]+)|(?P<sign>[-+*/^_(){}\[\]|!',=])|(?P<other>\S))",
    re.DOTALL,
)
FUNCTIONS = {"sin", "cos", "tan", "cot", "sec", "csc", "log", "ln", "exp", "arcsin", "arccos", "arctan", "sinh", "cosh"}
GREEK = {
    "alpha", "beta", "gamma", "delta", "theta", "lambda", "mu", "phi", "varphi", "omega", "sigma", "rho", "epsilon"
}  # fmt: skip
WITH_INVERSE = ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")
INVERSE = {f"arc{name}" for name in WITH_INVERSE}
OF_NUMBERS: dict[str, Callable[..., int]] = {"gcd": math.gcd, "lcm": math.lcm, "max": max, "min": min}
_SPELLINGS = {
    f"{short}{name}": f"arc{name}"
    for short in ("a", "ar", "arc")
    for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
}
_WORDS = {name: name for name in ("pi", "sqrt", *FUNCTIONS, *INVERSE, *OF_NUMBERS, "det")} | _SPELLINGS
_BY_LENGTH = sorted(_WORDS, key=len, reverse=True)
OPERATORS = {"sum", "prod", "int", "lim"}
_BRACKETS = {("(", ")"), ("[", "]"), ("{", "}")}
Token = tuple[str, str]
Letters = Set[str] | None
"""Letters of which runs may be products; None: all."""


def tokens_of(text: str, letters: Letters) -> list[Token]:
    """Cut ``text`` into kinds and lexemes. Runs of letters are products; ``letters`` are those that may form one.

    Raises:
        UnreadableError: something is no part of an expression.
    """
    if any(f"\\{name}" in text for name in OPERATORS):
        letters = None
    tokens: list[Token] = []
    depth = 0
    for match in _token.finditer(text):
        kind, lexeme = match.lastgroup or "other", match[match.lastgroup or 0]
        if kind == "other":
            raise UnreadableError(f"{lexeme!r} is no part of an expression")
        if kind in ("number", "sci") and len(lexeme) > MOST_DIGITS:
            raise UnreadableError("too many digits")
        depth += (lexeme in ("(", "[")) - (lexeme in (")", "]"))
        if "," in lexeme and kind == "number" and (depth > 0 or tokens[-1:] == [("sign", "|")]):
            tokens += [token for part in lexeme.split(",") for token in (("sign", ","), ("number", part))][1:]
        else:
            tokens += _named_tokens(kind, lexeme, letters)
    return tokens


def _named_tokens(kind: str, lexeme: str, letters: Letters) -> list[Token]:
    match kind:
        case "command":
            return [("name", _SPELLINGS.get(lexeme[1:], lexeme[1:]))]
        case "word":
            return _letters(lexeme, letters)
        case "prime":
            return [("sign", "'")] * lexeme.count("prime")
        case "rate":
            rate = re.sub(r"\\frac|\s", "", lexeme).replace("}{", "/")
            slope = re.fullmatch(r"\{?d/d([a-z])\}?", rate)
            return [("slope", slope[1])] if slope else [("opaque", re.sub(r"[{}]", "", rate))]
        case "corner":
            what, points = re.findall(r"[a-z]{3,}|[A-Z]+", lexeme)[-2:]
            points = min(points, points[::-1]) if what == "angle" else points
            return [("opaque", f"{'vector' if what in ('vec', 'overrightarrow') else what} {points}")]
    return [(kind, lexeme)]


def _letters(lexeme: str, letters: Letters) -> list[Token]:
    """A run of letters: a known name, or a product of single letters."""
    for name in _BY_LENGTH:
        if lexeme.startswith(name):
            rest = lexeme[len(name) :]
            return [("name", _WORDS[name]), *(_letters(rest, letters) if rest else [])]
    if len(lexeme) > 1 and (len(lexeme) > 4 or (letters is not None and not set(lexeme) <= letters)):
        raise UnreadableError(f"the word {lexeme[:40]!r}")
    return [("letter", letter) for letter in lexeme]


class Cursor:
    """Tokens of one text, and the ``position`` from which a parser reads on."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens, self.position = tokens, 0

    def peek(self, ahead: int = 0) -> Token:
        """The token that comes next, or ``ahead`` of it."""
        position = self.position + ahead
        return self.tokens[position] if position < len(self.tokens) else ("end", "")

    def take(self) -> Token:
        """The token that comes next, which is passed.

        Raises:
            UnreadableError: there is another, or none.
        """
        token = self.peek()
        if token[0] == "end":
            raise UnreadableError("it ends too early")
        self.position += 1
        return token

    def accept(self, *lexemes: str) -> str:
        """Pass the next token where it is one of ``lexemes``, and return it."""
        kind, lexeme = self.peek()
        if kind in ("sign", "name") and lexeme in lexemes:
            self.position += 1
            return lexeme
        return ""

    def expect(self, *lexemes: str) -> None:
        """Pass these tokens.

        Raises:
            UnreadableError: there is another, or none.
        """
        for lexeme in lexemes:
            if self.take()[1] != lexeme:
                raise UnreadableError(f"{lexeme!r} is missing")

    def marks(self) -> str:
        """Pass the primes that come next, and return them."""
        count = 0
        while self.accept("'"):
            count += 1
        return "'" * count

    def closing(self) -> int:
        """Where the bracket closes that comes next, -1 where none of its kind does."""
        opening, depth = self.peek()[1], 0
        for position in range(self.position, len(self.tokens)):
            depth += (self.tokens[position][1] in ("(", "[", "{")) - (self.tokens[position][1] in (")", "]", "}"))
            if depth == 0:
                return position if (opening, self.tokens[position][1]) in _BRACKETS else -1
        return -1

    def arguments(self) -> list[list[Token]]:
        """Pass the brackets that come next, and return the tokens of each argument in them.

        Raises:
            UnreadableError: a bracket is open.
        """
        end = self.closing()
        if end < 0:
            raise UnreadableError("a bracket is open")
        parts: list[list[Token]] = [[]]
        level = 0
        for token in self.tokens[self.position + 1 : end]:
            level += (token[1] in ("(", "[", "{")) - (token[1] in (")", "]", "}"))
            if token == ("sign", ",") and level == 0:
                parts.append([])
            else:
                parts[-1].append(token)
        self.position = end + 1
        return parts


def parsed(text: str) -> ast.expr:
    """Return the tree of one expression whose operators are written as Python writes them: parsed, never executed.

    Raises:
        UnreadableError: it is none, or nested too deeply.
    """
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise UnreadableError("no expression") from error
