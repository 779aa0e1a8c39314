"""Calls with literals like those that there are: numbers a little off, texts and lists shorter, longer or turned."""

import ast
import random
from typing import TypeVar

T = TypeVar("T", str, bytes, list[object], tuple[object, ...])
_MOST = 50
"""Elements of what grows; numbers grow by 3 at most, so that nothing takes much longer than before."""


def varied(expression: str, rng: random.Random) -> str:
    """Return ``expression``, a call with literals (perhaps in ``list``), with one of its arguments or all varied."""
    tree = ast.parse(expression, mode="eval")
    call = tree.body
    assert isinstance(call, ast.Call)  # noqa: S101 - see above
    if call.args and isinstance(call.args[0], ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "list":
        call = call.args[0]
    chosen = range(len(call.args)) if rng.random() < 0.3 else [rng.randrange(len(call.args))] if call.args else []
    for at in chosen:
        try:
            value = _varied(ast.literal_eval(call.args[at]), rng)
        except (ValueError, TypeError):
            continue  # ``set()`` of what cannot be in one
        call.args[at] = ast.parse(repr(value), mode="eval").body
    return ast.unparse(tree)


def _varied(value: object, rng: random.Random) -> object:
    match value:
        case list():
            return _cut(_with_another(value, rng), rng)
        case tuple():
            return _cut((*_with_another([*value], rng),), rng)
        case set():
            return {*_with_another(sorted(value, key=repr), rng)}
        case dict():
            items = [*zip(value, _with_another([*value.values()], rng), strict=True)]
            return dict(rng.sample(items, rng.randint(0, len(items))))
    return _varied_atom(value, rng)


def _varied_atom(value: object, rng: random.Random) -> object:
    match value:
        case bool() | None:
            return rng.choice((True, False, None, value))
        case int():
            return value + rng.choice((-3, -2, -1, 1, 2, 3, -value, -2 * value))
        case float():
            return rng.choice((value + 1, value - 0.5, -value, 0.0, value * 2))
        case str():
            return rng.choice((_cut(value, rng), value.swapcase(), value.title(), f"{value} ", f"_{value}"))
        case bytes():
            return _cut(value, rng)
    return value


def _with_another(values: list[object], rng: random.Random) -> list[object]:
    """``values``, one of which is varied, or none."""
    chosen = rng.randrange(2 * len(values) + 1)
    return [_varied(each, rng) if number == chosen else each for number, each in enumerate(values)]


def _cut(value: T, rng: random.Random) -> T:
    at = rng.randint(0, len(value))
    longer = value[:at] + value[max(0, at - 2) :] if len(value) < _MOST else value
    return rng.choice((value, value, value[:at], value[at:], value[::-1], longer))
