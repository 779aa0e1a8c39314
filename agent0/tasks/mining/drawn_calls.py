"""Calls of the functions of drawn repositories, without what draws these: a run decides by them."""

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class DrawnCall:
    """A call of ``function``, written as an expression over the names of its ``module``."""

    module: str
    function: str
    expression: str


def drawn_calls(module: str, function: str, count: int, rng: random.Random) -> list[DrawnCall]:
    """Draw ``count`` calls of a function of lists, all different, or of ``after``, which takes steps."""
    arguments: list[str] = [str(_session(rng)) for _ in range(count)] if function == "after" else []
    arguments = arguments or [str(values) for values in _lists(rng, count)]
    return [DrawnCall(module, function, f"{function}({argument})") for argument in arguments]


def _lists(rng: random.Random, count: int) -> list[list[int]]:
    """Different lists of whole numbers: an empty list, a short list, then sizes in turns, a fifth of them sorted."""
    lists: list[list[int]] = [[]]
    while len(lists) < count:
        size, top = (rng.randint(1, 2), 9) if len(lists) == 1 else (3 + len(lists) % 7, rng.choice((3, 6, 15)))
        values = [rng.randint(-top // 2, top) for _ in range(size)]
        values = sorted(values) if rng.random() < 0.2 else values
        if values not in lists:
            lists.append(values)
    return lists


def _session(rng: random.Random) -> list[tuple[object, ...]]:
    """What is done with an object of the class, one after the other."""
    steps: list[tuple[object, ...]] = [("result",)]
    for _ in range(rng.randint(3, 6)):
        kind = rng.choice(("add", "add", "undo", "result"))
        steps.append(
            (kind, _lists(rng, 3)[2]) if kind == "add" else (kind, rng.randint(1, 3)) if kind == "undo" else (kind,)
        )
    return [*steps, ("result",)]
