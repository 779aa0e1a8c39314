"""Suites generated from a seed: item i has a random source of its own and is of kind i modulo their number, so the
first n items are the same however many are made, and no question is asked twice."""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from agent0.evaluation.benchmarks import Item
from agent0.grading import Grade, answer_in, grade
from agent0.grading.math.forms import fold
from agent0.ports.sandbox import Sandbox

TRIES = 200
Kind = Callable[[random.Random], Item]
"""An item from a random source; its id is given later."""


def seeded(name: str, kinds: Mapping[str, Kind], n: int, seed: int) -> list[Item]:
    """Generate the first ``n`` items of the suite ``name`` from ``seed``.

    ``kinds`` are its generators by name, taken in turns.
    """
    names, out, questions = list(kinds), list[Item](), set[str]()
    for number in range(n):
        kind = names[number % len(names)]
        item = next(item for item in _tries(name, kinds[kind], kind, seed, number) if item.question not in questions)
        questions.add(item.question)
        facts = {"subject": kind, **item.facts}
        out.append(replace(item, id=f"{name}/{kind}/{seed}/{number}", facts=facts))
    return out


def _tries(name: str, make: Kind, kind: str, seed: int, number: int) -> Iterator[Item]:
    """The item of a place, and others in its stead where its question was asked already."""
    for again in range(TRIES):
        yield make(random.Random(f"{name} {kind} {seed} {number} {again}"))


async def exactly(item: Item, reply: str, answer: str | None, sandbox: Sandbox) -> Grade:
    """Grade by value where the gold is a number, else by the text itself, but for case and spaces. The questions want a
    box; a reply without one is read as ``answer_in`` reads any."""
    submitted = answer if answer is not None else answer_in(reply)
    if submitted is None or not submitted.strip():
        return Grade(False, "no answer", item.gold)
    if item.gold.replace(".", "", 1).replace("-", "", 1).isdigit():
        verdict = grade(item.gold, submitted)
        return replace(verdict, correct=bool(verdict.correct), symbolic=False)
    return Grade(fold(item.gold) == fold(submitted), "words", item.gold, submitted[:200])
