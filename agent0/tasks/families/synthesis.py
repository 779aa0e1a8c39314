"""Synthesis: find a chain of list operations that turns each example's input into its output. The check runs the chain.

``params``: ``most`` (operations that may be chained), ``operations`` (those offered) and ``examples`` of [input,
output].
"""

import itertools
import random
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("Chain at most {}.", "Make a chain of up to {}.", "Which chain of at most {}?")
OFFERED = 6
"""Operations that a task offers."""
SHORTEST, LONGEST = 2, 5
"""Operations that an answer may chain: level + 1."""
TOP = 99
"""The largest number of a list."""
LONGEST_ANSWER = 100

Numbers = tuple[int, ...]
Operation = Callable[[Numbers], Sequence[int]]

LANGUAGE: dict[str, tuple[str, Operation]] = {
    "sort": ("sorted(s)", sorted),
    "reverse": ("s[::-1]", lambda s: s[::-1]),
    "tail": ("s[1:]", lambda s: s[1:]),
    "init": ("s[:-1]", lambda s: s[:-1]),
    "double": ("[2*n for n in s]", lambda s: [2 * n for n in s]),
    "inc": ("[n+1 for n in s]", lambda s: [n + 1 for n in s]),
    "dec": ("[n-1 for n in s]", lambda s: [n - 1 for n in s]),
    "odds": ("[n for n in s if n%2]", lambda s: [n for n in s if n % 2]),
    "evens": ("[n for n in s if n%2<1]", lambda s: [n for n in s if n % 2 < 1]),
    "sums": ("[sum(s[:k+1])for k in range(len(s))]", lambda s: list(itertools.accumulate(s))),
    "steps": ("[abs(a-b)for a,b in zip(s,s[1:])]", lambda s: [abs(a - b) for a, b in itertools.pairwise(s)]),
    "unique": ("list(dict.fromkeys(s))", lambda s: list(dict.fromkeys(s))),
}
"""Every operation there is, from a list to a list: as Python of a list s, and as what it does."""
PROBES: tuple[Numbers, ...] = ((3, 1, 2, 5, 4, 9, 7), (8, 6, 7, 0, 2, 5, 5), (1, 1, 4, 10, 2, 3, 6))
"""Lists that a program must tell apart, or it is a constant."""

_list = "(?:0|[1-9][0-9]?)(?:,(?:0|[1-9][0-9]?)){0,5}"
_example = f"{_list} to {_list}"
_offer = rf"([{SHORTEST}-{LONGEST}]) of ([a-z]+(?:,[a-z]+){{1,{OFFERED - 1}}})"
_shape = re.compile(rf"{_offer}: ({_example}(?:; {_example}){{1,2}})")
_between = re.compile(r"\s*(?:[,;>|]|->)\s*|\s+")


def sample(level: int, rng: random.Random) -> Params:
    """Draw two examples of a hidden program of level + 1 operations, each of which changes something, among ``OFFERED``
    operations.

    Draws with a trivial answer are repeated.
    """
    while True:
        offered = rng.sample(list(LANGUAGE), OFFERED)
        program = [rng.choice(offered) for _ in range(level + 1)]
        size, top = (4, 15) if level < 3 else (5, 9)
        inputs = [tuple(rng.randint(0, top) for _ in range(size)) for _ in range(2)]
        ways = [_way(program, numbers) for numbers in inputs]
        examples = [[list(way[0]), list(way[-1])] for way in ways]
        params: Params = {"most": level + 1, "operations": offered, "examples": examples}
        moving = all(before != after for way in ways for before, after in itertools.pairwise(way))
        if moving and all(way[-1] and _fits(way[-1]) for way in ways) and not trivial(params):
            return params


def _way(program: Sequence[str], numbers: Numbers) -> list[Numbers]:
    """``numbers`` and what they are after each operation."""
    way = [numbers]
    for name in program:
        way.append(tuple(LANGUAGE[name][1](way[-1])))
    return way


def _fits(numbers: Sequence[int]) -> bool:
    return all(0 <= number <= TOP for number in numbers)


def _body(params: Params, operations: Sequence[str], examples: Sequence[Any]) -> str:
    shown = "; ".join(f"{_listed(numbers)} to {_listed(output)}" for numbers, output in examples)
    return f"{params['most']} of {','.join(operations)}: {shown}"


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def render(params: Params, rng: random.Random) -> str:
    """Word operations and examples as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, _body(params, params["operations"], params["examples"]), rng)


def parse(question: str) -> Params | None:
    """Read 2 to 6 operations, how many may be chained, and 2 or 3 examples of up to 6 numbers; None for other text."""
    for body in bodies(WORDINGS, question):
        if match := _shape.fullmatch(body):
            operations = match[2].split(",")
            if len(set(operations)) == len(operations) and set(operations) <= set(LANGUAGE):
                pairs = [pair.split(" to ") for pair in match[3].split("; ")]
                examples = [[[int(n) for n in side.split(",")] for side in pair] for pair in pairs]
                return {"most": int(match[1]), "operations": operations, "examples": examples}
    return None


def level(params: Params) -> int:
    """The level of a task: how many operations may be chained, less one."""
    return int(params["most"]) - 1


def solve(params: Params) -> str:
    """Search breadth first for a shortest program that fits all examples; empty where there is none."""
    inputs, outputs = (tuple(tuple(example[side]) for example in params["examples"]) for side in (0, 1))
    programs = _shortest(tuple(params["operations"]), inputs, outputs, params["most"])
    return next((";".join(program) for program in programs if not _constant(program)), "")


@lru_cache(maxsize=256)
def _shortest(
    operations: tuple[str, ...], inputs: tuple[Numbers, ...], outputs: tuple[Numbers, ...], most: int
) -> tuple[tuple[str, ...], ...]:
    """A shortest program, alone in a tuple, that makes ``outputs`` of ``inputs``; none where none has at most ``most``
    operations. Programs with equal results so far are continued once."""
    reached: dict[tuple[Numbers, ...], tuple[str, ...]] = {inputs: ()}
    edge = dict(reached)
    for _ in range(most):
        further: dict[tuple[Numbers, ...], tuple[str, ...]] = {}
        for lists, program in edge.items():
            for name in operations:
                after = tuple(tuple(LANGUAGE[name][1](numbers)) for numbers in lists)
                if after == outputs:
                    return ((*program, name),)
                if after not in reached and all(after):
                    reached[after] = further[after] = (*program, name)
        edge = further
    return ()


def check(params: Params, answer: str) -> str:
    """Check a program by running it on every example; returns why it is wrong, empty where it is right.

    A program that gives the same for every list (``PROBES``) is wrong.
    """
    program = _between.split(answer.strip()) if len(answer) <= LONGEST_ANSWER else []
    if unknown := [name for name in program if name not in params["operations"]]:
        return f"there is no operation {unknown[0][:20]!r}" if unknown[0] else "no chain of operations"
    if not program:
        return "no chain of operations"
    if len(program) > params["most"]:
        return f"{len(program)} operations, at most {params['most']} may be chained"
    if _constant(program):
        return "it gives the same whatever the list"
    for numbers, output in params["examples"]:
        got = _way(program, tuple(numbers))[-1]
        if got != tuple(output):
            return f"{_listed(numbers)} becomes {_listed(got) or 'empty'}, not {_listed(output)}"
    return ""


def _constant(program: Sequence[str]) -> bool:
    return len({_way(program, probe)[-1] for probe in PROBES}) == 1


def trivial(params: Params) -> str:
    """Why the task is trivial: all outputs are equal, or equal their inputs, or one operation is enough. Empty where it
    is not."""
    if len({tuple(output) for _, output in params["examples"]}) == 1:
        return "every output is the same"
    if all(numbers == output for numbers, output in params["examples"]):
        return "the outputs are the inputs"
    alone = next((name for name in params["operations"] if not check(params, name)), "")
    return f"{alone} alone is enough" if alone else ""


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: operations and examples, sorted."""
    return f"synthesis {_body(params, sorted(params['operations']), sorted(params['examples']))}"


def operands(params: Params) -> str:
    """What tasks with other outputs share: operations, how many may be chained, and the inputs."""
    inputs = "; ".join(_listed(numbers) for numbers, _ in sorted(params["examples"]))
    return f"synthesis {params['most']} of {','.join(sorted(params['operations']))}: {inputs}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python tries every chain, the shortest first."""
    names = ",".join(f"{name!r}:lambda s:{LANGUAGE[name][0]}" for name in params["operations"])
    lines = [
        "from itertools import product",
        f"F={{{names}}}",
        f"E={params['examples']}",
        "def run(p,s):",
        " for f in p:s=F[f](s)",
        " return s",
        f"every=(p for n in range(1,{params['most'] + 1}) for p in product(F,repeat=n))",
        "print(';'.join(next(p for p in every if all(run(p,a)==b for a,b in E))))",
    ]
    return "python", {"code": "\n".join(lines)}


ENTRY = family(
    Family("synthesis", "code", sample, render, parse, level, solve, canonical, call,
           check=check, trivial=trivial, operands=operands)
)  # fmt: skip
