"""Expressions that families share: whole numbers, + - * ** and brackets, comparisons, and / or / not.

Texts come from models, so nothing is evaluated by Python: a strict grammar reads at most ``LONGEST`` characters.
"""

import operator
import re
from collections.abc import Callable

LONGEST = 96
BIGGEST_POWER = 99

_token = re.compile(r"\d{1,4}|\*\*|==|[-+*()<>]|not | and | or ")
_compare: dict[str, Callable[[int, int], bool]] = {"<": operator.lt, ">": operator.gt, "==": operator.eq}


def value(text: str) -> int:
    """Evaluate ``text`` as an expression; truth values are returned as bools.

    Raises:
        ValueError: anything outside the grammar.
    """
    tokens = _token.findall(text)
    if len(text) > LONGEST or "".join(tokens) != text:
        raise ValueError(f"not an expression: {text[:LONGEST]!r}")
    reader = _ExpressionReader([token.strip() for token in tokens])
    result = reader.either()
    if reader.rest:
        raise ValueError(f"left over: {reader.rest}")
    return result


def numbers(text: str) -> list[int]:
    """Find the whole numbers in ``text``, in order of appearance."""
    return [int(digits) for digits in re.findall(r"\d+", text)]


class _ExpressionReader:
    """Recursive descent; each method reads one rank of precedence, loosest first."""

    def __init__(self, tokens: list[str]) -> None:
        self.rest = tokens

    def _next(self, *tokens: str) -> str:
        return self.rest.pop(0) if self.rest and self.rest[0] in tokens else ""

    def either(self) -> int:
        result = self.both()
        while self._next("or"):
            right = self.both()
            result = _truth(result) or _truth(right)
        return result

    def both(self) -> int:
        result = self.negation()
        while self._next("and"):
            right = self.negation()
            result = _truth(result) and _truth(right)
        return result

    def negation(self) -> int:
        return not _truth(self.negation()) if self._next("not") else self.comparison()

    def comparison(self) -> int:
        left = self.total()
        sign = self._next("<", ">", "==")
        return _compare[sign](_number(left), _number(self.total())) if sign else left

    def total(self) -> int:
        result = self.product()
        while sign := self._next("+", "-"):
            right = _number(self.product())
            result = _number(result) + (right if sign == "+" else -right)
        return result

    def product(self) -> int:
        result = self.power()
        while self._next("*"):
            result = _number(result) * _number(self.power())
        return result

    def power(self) -> int:
        base = self.atom()
        if not self._next("**"):
            return base
        exponent = _number(self.atom())
        if not 0 <= exponent <= BIGGEST_POWER:
            raise ValueError(f"power {exponent} is out of bounds")
        return int(_number(base) ** exponent)

    def atom(self) -> int:
        if self._next("("):
            result = self.either()
            if not self._next(")"):
                raise ValueError("a bracket is open")
            return result
        if not self.rest or not self.rest[0].isdigit() or (len(self.rest[0]) > 1 and self.rest[0][0] == "0"):
            raise ValueError(f"a number is missing before {self.rest[:1]}")
        return int(self.rest.pop(0))


def _truth(operand: int) -> bool:
    if not isinstance(operand, bool):
        raise ValueError(f"{operand} is a number, not a truth value")
    return operand


def _number(operand: int) -> int:
    if isinstance(operand, bool):
        raise ValueError(f"{operand} is a truth value, not a number")
    return operand
