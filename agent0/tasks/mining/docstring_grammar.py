"""A closed grammar of statements that say what a function makes of a list of whole numbers, and their reader: what he
understands is exact, and what is no statement he does not understand. The last one says what is returned."""

import ast
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

Numbers = list[int]
Result = Numbers | int
MOST_STATEMENTS, LARGEST, DRAWN = 8, 10**30, 10
"""Statements of a docstring, what no value may reach, and functions that are drawn to see what a statement is for."""
_NUMBER = r"(-?\d{1,4})"


class UnreadableStatementError(Exception):
    """A docstring is not in the grammar; the message says where."""


@dataclass(frozen=True)
class StatementForm:
    """A form of statements: ``text`` with ``{a}`` and ``{b}`` for numbers, of which ``first`` and ``last`` bound those
    that are drawn; ``apply`` is what it says; ``lines`` write it as Python, in two ways."""

    text: str
    first: tuple[int, ...]
    last: tuple[int, ...]
    apply: Callable[..., Result]
    lines: tuple[str, str]

    @property
    def pattern(self) -> re.Pattern[str]:
        """What reads such a statement."""
        return re.compile(re.sub(r"\\\{[ab]\\\}", lambda _: _NUMBER, re.escape(self.text)))


@dataclass(frozen=True)
class Statement:
    """A statement of the form named ``form`` with its ``numbers``."""

    form: str
    numbers: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """As it stands in a docstring."""
        return FORMS[self.form].text.format(**dict(zip("ab", self.numbers, strict=False)))

    @property
    def returns(self) -> bool:
        """Whether it says what is returned."""
        return self.text.startswith("Return")


def _each(change: str) -> tuple[str, str]:
    """Both ways to write that each value is changed."""
    loop = f"result = []\nfor value in values:\n    result.append({change})\nvalues = result"
    return f"values = [{change} for value in values]", loop


def _those(test: str, other: str) -> tuple[str, str]:
    """Both ways to write that some values are kept."""
    loop = f"for value in values:\n    if {other}:\n        continue\n    result.append(value)\nvalues = result"
    return f"values = [value for value in values if {test}]", f"result = []\n{loop}"


def _sums(values: Numbers, a: int) -> Numbers:
    return [sum(values[at : at + a]) for at in range(len(values) - a + 1)]


def _turned(values: Numbers, a: int) -> Numbers:
    return values[a % len(values) :] + values[: a % len(values)] if values else []


FORMS: Mapping[str, StatementForm] = {
    "drop below": StatementForm(
        "Drop the values below {a}.",
        (-2,),
        (4,),
        lambda values, a: [value for value in values if value >= a],
        _those("value >= {a}", "value < {a}"),
    ),
    "drop above": StatementForm(
        "Drop the values above {a}.",
        (2,),
        (9,),
        lambda values, a: [value for value in values if value <= a],
        _those("not value > {a}", "value > {a}"),
    ),
    "multiples": StatementForm(
        "Drop the multiples of {a}.",
        (2,),
        (4,),
        lambda values, a: [value for value in values if a and value % a],
        _those("value % {a} != 0", "value % {a} == 0"),
    ),
    "add": StatementForm(
        "Add {a} to each value.", (1,), (9,), lambda values, a: [value + a for value in values], _each("value + {a}")
    ),
    "subtract": StatementForm(
        "Subtract each value from {a}.",
        (1,),
        (9,),
        lambda values, a: [a - value for value in values],
        _each("{a} - value"),
    ),
    "multiply": StatementForm(
        "Multiply each value by {a}.",
        (2,),
        (7,),
        lambda values, a: [value * a for value in values],
        _each("value * {a}"),
    ),
    "remainder": StatementForm(
        "Replace each value by its remainder by {a}.",
        (4,),
        (11,),
        lambda values, a: [value % a for value in values],
        _each("value % {a}"),
    ),
    "square": StatementForm(
        "Replace each value by its square.",
        (),
        (),
        lambda values: [value * value for value in values],
        _each("value * value"),
    ),
    "raise": StatementForm(
        "Replace the values below {a} by {b}.",
        (0, -9),
        (4, 9),
        lambda values, a, b: [b if value < a else value for value in values],
        _each("{b} if value < {a} else value"),
    ),
    "lower": StatementForm(
        "Replace the values above {a} by {b}.",
        (2, -9),
        (8, 9),
        lambda values, a, b: [b if value > a else value for value in values],
        _each("{b} if value > {a} else value"),
    ),
    "first": StatementForm(
        "Leave out the first {a} values.",
        (1,),
        (3,),
        lambda values, a: values[max(a, 0) :],
        ("values = values[{a}:]", "values = [value for at, value in enumerate(values) if at >= {a}]"),
    ),
    "last": StatementForm(
        "Leave out the last {a} values.",
        (1,),
        (3,),
        lambda values, a: values[: max(0, len(values) - max(a, 0))],
        ("values = values[:-{a}]", "values = [value for at, value in enumerate(values) if at + {a} < len(values)]"),
    ),
    "reverse": StatementForm(
        "Reverse the order.",
        (),
        (),
        lambda values: values[::-1],
        ("values = values[::-1]", "values = [*reversed(values)]"),
    ),
    "sort": StatementForm(
        "Sort from the smallest to the largest.",
        (),
        (),
        lambda values: sorted(values),
        ("values = sorted(values)", "values = list(values)\nvalues.sort()"),
    ),
    "every": StatementForm(
        "Keep the values at places that are multiples of {a}, counted from 0.",
        (2,),
        (3,),
        lambda values, a: values[:: max(a, 1)],
        ("values = values[::{a}]", "values = [value for at, value in enumerate(values) if at % {a} == 0]"),
    ),
    "totals": StatementForm(
        "Replace the values by their running totals.",
        (),
        (),
        lambda values: list(accumulate(values)),
        (
            "values = [sum(values[: at + 1]) for at in range(len(values))]",
            "total, sums = 0, []\nfor value in values:\n    total += value\n    sums.append(total)\nvalues = sums",
        ),
    ),
    "differences": StatementForm(
        "Replace the values by what each but the first is above the one before it.",
        (),
        (),
        lambda values: [second - first for first, second in pairwise(values)],
        (
            "values = [second - first for first, second in zip(values, values[1:])]",
            "values = [values[at] - values[at - 1] for at in range(1, len(values))]",
        ),
    ),
    "sums": StatementForm(
        "Replace the values by the sums of each {a} neighbours.",
        (2,),
        (3,),
        _sums,
        (
            "values = [sum(values[at : at + {a}]) for at in range(len(values) - {a} + 1)]",
            "values = [sum(values[end - {a} : end]) for end in range({a}, len(values) + 1)]",
        ),
    ),
    "unique": StatementForm(
        "Leave out values that equal an earlier one.",
        (),
        (),
        lambda values: list(dict.fromkeys(values)),
        (
            "values = list(dict.fromkeys(values))",
            "values = [value for at, value in enumerate(values) if value not in values[:at]]",
        ),
    ),
    "turn": StatementForm(
        "Turn the order {a} places to the left.",
        (1,),
        (3,),
        _turned,
        (
            "values = values[{a} % len(values) :] + values[: {a} % len(values)] if values else []",
            "values = [values[(at + {a}) % len(values)] for at in range(len(values))]",
        ),
    ),
    "return": StatementForm("Return the values.", (), (), lambda values: values, ("return values", "return [*values]")),
    "return sum": StatementForm(
        "Return the sum of the values.",
        (),
        (),
        lambda values: sum(values),
        ("return sum(values)", "total = 0\nfor value in values:\n    total += value\nreturn total"),
    ),
    "return rest": StatementForm(
        "Return the remainder of the sum of the values by {a}.",
        (7,),
        (40,),
        lambda values, a: sum(values) % a,
        ("return sum(values) % {a}", "total = 0\nfor value in values:\n    total += value\nreturn total % {a}"),
    ),
    "return largest": StatementForm(
        "Return the largest value, or {a} if there is none.",
        (-3,),
        (3,),
        lambda values, a: max(values, default=a),
        ("return max(values, default={a})", "return sorted(values)[-1] if values else {a}"),
    ),
    "return at": StatementForm(
        "Return the value at place {a}, counted from 0, or {b} if there is none.",
        (0, -3),
        (2, 3),
        lambda values, a, b: values[a] if 0 <= a < len(values) else b,
        (
            "return values[{a}] if len(values) > {a} else {b}",
            "for value in values[{a}:]:\n    return value\nreturn {b}",
        ),
    ),
}
RETURNS = sorted(name for name in FORMS if name.startswith("return"))
STEPS = sorted(set(FORMS) - set(RETURNS))
_PATTERNS = {name: form.pattern for name, form in FORMS.items()}


def read_statements(text: str) -> tuple[Statement, ...]:
    """Read a docstring without its examples: statements, of which the last says what is returned, and no other does.

    Raises:
        UnreadableStatementError: something else stands in it.
    """
    sentences = [sentence for sentence in re.split(r"(?<=\.)\s+", " ".join(text.split())) if sentence]
    if not 0 < len(sentences) <= MOST_STATEMENTS:
        raise UnreadableStatementError(f"it has {len(sentences)} statements; at most {MOST_STATEMENTS} are read")
    statements = tuple(map(_statement, sentences))
    if [statement.returns for statement in statements] != [False] * (len(statements) - 1) + [True]:
        raise UnreadableStatementError("its last statement, and no other, is to say what is returned")
    return statements


def _statement(sentence: str) -> Statement:
    for name, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(sentence):
            return Statement(name, tuple(map(int, match.groups())))
    raise UnreadableStatementError(f"{sentence[:60]!r} is no statement of the grammar")


def value_of(statements: Sequence[Statement], values: Numbers) -> Result | None:
    """What a function does that its reader writes by ``statements``; None where they make no sense, such as a remainder
    by 0."""
    result: Result = list(values)
    for statement in statements:
        try:
            result = FORMS[statement.form].apply(result, *statement.numbers)
        except (ZeroDivisionError, ValueError, IndexError):
            return None
        numbers = result if isinstance(result, list) else [result]
        if numbers and (max(numbers) > LARGEST or min(numbers) < -LARGEST):
            return None
    return result


def values_by(statements: Sequence[Statement], inputs: Sequence[Numbers]) -> list[Result | None]:
    """Read the values that ``statements`` give of each of ``inputs``, in order."""
    return [value_of(statements, values) for values in inputs]


def argument(call: str) -> Numbers:
    """The list that a call of a function is given.

    Raises:
        ValueError, SyntaxError: there is none.
    """
    values = ast.literal_eval(call.partition("(")[2].removesuffix(")"))
    if not isinstance(values, list):
        raise ValueError("it takes a list")
    return values


def changes_of(statements: Sequence[Statement], at: int, most: int = 1) -> list[tuple[Statement, ...]]:
    """All that differ from ``statements`` in a number of statement ``at``, by ``most`` at most; where it has none, in
    its form."""
    statement = statements[at]
    others = [Statement(form) for form in (RETURNS if statement.returns else STEPS) if not FORMS[form].first]
    if statement.numbers:
        others = [
            Statement(statement.form, (*statement.numbers[:place], number + by, *statement.numbers[place + 1 :]))
            for place, number in enumerate(statement.numbers)
            for by in range(-most, most + 1)
        ]
    return [(*statements[:at], other, *statements[at + 1 :]) for other in others if other != statement]


def drawn_functions(statements: Sequence[Statement]) -> list[tuple[Statement, ...]]:
    """Ten functions that lack a statement or differ in one, those first that lack one."""
    lacking = [(*statements[:at], *statements[at + 1 :]) for at in range(len(statements) - 1)]
    changed = [other for at in range(len(statements)) for other in changes_of(statements, at, most=3)]
    return [*lacking, *random.Random(str(statements)).sample(changed, min(len(changed), DRAWN - len(lacking)))]


def inexact(statements: Sequence[Statement], inputs: Sequence[Numbers], expected: Sequence[Result | None]) -> str:
    """Why a docstring of ``statements``, which are right, is not exact: one of them may be left out without any of ten
    drawn functions passing that is wrong, or be changed; empty where it is exact."""
    wrong = [values for other in drawn_functions(statements) if (values := values_by(other, inputs)) != expected]
    for at, statement in enumerate(statements):
        if not statement.returns and values_by((*statements[:at], *statements[at + 1 :]), inputs) not in wrong:
            return f"{statement.text!r} says nothing that matters"
        if all(values_by(other, inputs) == expected for other in changes_of(statements, at)):
            return f"{statement.text!r} may be changed and nothing is noticed"
    return ""
