"""Revision (long): a function is written to a file, called, changed and called again.

``params``: ``steps``, each a kind of ``SENTENCES`` with its numbers. Each report is computed.
"""

import itertools
import random
import re
from dataclasses import dataclass, replace
from typing import Any

from agent0.tasks.families import Family, Params, Subgoal, family
from agent0.tasks.families.stages import FEWEST, StepActions, question_of, read, script

FILE = "f.py"
SENTENCES = {
    "write": "Write f(x) = {}*x+{} to f.py and report f({})",
    "factor": "Set its factor to {} and report f({})",
    "term": "Set its term to {} and report f({})",
    "rest": "Reduce f modulo {} and report f({})",
    "test": "Test f({}) > {} and report True or False",
    "total": "Report the sum of f(0) to f({})",
    "twice": "Report f(f({}))",
}
_shapes = {kind: re.compile(r"([1-9]\d{0,3})".join(map(re.escape, s.split("{}")))) for kind, s in SENTENCES.items()}
BIGGEST = 99
"""Of what a sum goes to."""


@dataclass(frozen=True)
class _LinearFunction:
    """``factor * x + term``, and the rest after division by ``modulus`` where that is not 0."""

    factor: int
    term: int
    modulus: int = 0

    def __call__(self, x: int) -> int:
        value = self.factor * x + self.term
        return value % self.modulus if self.modulus else value

    @property
    def text(self) -> str:
        """The expression that it returns, as Python code."""
        inner = f"{self.factor}*x+{self.term}"
        return f"({inner})%{self.modulus}" if self.modulus else inner


def sample(level: int, rng: random.Random) -> Params:
    """Draw a function, then level + 1 changes and reports; no two of one kind in a row, no test at the end."""
    drawn = [["write", rng.randint(2, 99), rng.randint(2, 99), rng.randint(2, 30)]]
    for index in range(level + 1):
        kinds = [kind for kind in list(SENTENCES)[1:] if kind != drawn[-1][0] and (kind != "test" or index < level)]
        drawn.append(_drawn(rng.choice(kinds), rng))
    return {"steps": drawn}


def _drawn(kind: str, rng: random.Random) -> list[Any]:
    ranges = {"test": ((2, 30), (50, 999)), "rest": ((11, 97), (2, 30)), "total": ((3, 20),), "twice": ((2, 9),)}
    return [kind, *(rng.randint(low, high) for low, high in ranges.get(kind, ((2, 99), (2, 30))))]


def _texts(params: Params) -> list[str]:
    return [SENTENCES[kind].format(*numbers) for kind, *numbers in params["steps"]]


def render(params: Params, rng: random.Random) -> str:
    """Word the steps as a question, in one of the wordings that all long families share."""
    return question_of(_texts(params), rng)


def parse(question: str) -> Params | None:
    """Read the steps from a question that writes the function first and only once; None for other text."""
    steps = [_read(text) for text in read(question) or ()]
    kinds = [step[0] if step else "" for step in steps]
    if not steps or kinds[0] != "write" or "write" in kinds[1:] or "" in kinds:
        return None
    return {"steps": steps}


def _read(text: str) -> list[Any] | None:
    for kind, shape in _shapes.items():
        if match := shape.fullmatch(text):
            numbers = [int(number) for number in match.groups()]
            return [kind, *numbers] if kind != "total" or numbers[0] <= BIGGEST else None
    return None


def level(params: Params) -> int:
    """The level of a task, by how many steps it has."""
    return len(params["steps"]) - FEWEST + 1


def _followed(params: Params) -> list[tuple[_LinearFunction, str, str]]:
    """After each step: the function, the expression that was asked for, and its value."""
    (_, factor, term, x), *rest = params["steps"]
    function = _LinearFunction(factor, term)
    after = [(function, f"f({x})", str(function(x)))]
    for kind, *numbers in rest:
        function = _changed(function, kind, numbers[0])
        after.append((function, *_report(function, kind, numbers)))
    return after


def _changed(function: _LinearFunction, kind: str, number: int) -> _LinearFunction:
    names = {"factor": "factor", "term": "term", "rest": "modulus"}
    return replace(function, **{names[kind]: number}) if kind in names else function


def _report(function: _LinearFunction, kind: str, numbers: list[int]) -> tuple[str, str]:
    first, last = numbers[0], numbers[-1]
    if kind == "test":
        return f"f({first})>{last}", str(function(first) > last)
    if kind == "total":
        return f"sum(map(f,range({first + 1})))", str(sum(map(function, range(first + 1))))
    return (f"f(f({last}))", str(function(function(last)))) if kind == "twice" else (f"f({last})", str(function(last)))


def solve(params: Params) -> str:
    """The value that the last step reports, as text."""
    return _followed(params)[-1][2]


def steps(params: Params) -> tuple[Subgoal, ...]:
    """The subgoals: one report each, with its answer."""
    return tuple(Subgoal(text, answer) for text, (_, _, answer) in zip(_texts(params), _followed(params), strict=True))


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: all steps in order."""
    return f"revision {params['steps']}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python prints the last report of the final function."""
    function, report, _ = _followed(params)[-1]
    return "python", {"code": f"def f(x): return {function.text}\nprint({report})"}


def play(params: Params) -> tuple[str, ...]:
    """The turns of a scripted student: one edit of the file for each change."""
    after = _followed(params)
    look = f"exec(open({FILE!r}).read());print({{}})"
    done = [StepActions(look.format(after[0][1]))]
    for (before, _, _), (function, report, _) in itertools.pairwise(after):
        change = (before.text, function.text) if function != before else ("", "")
        done.append(StepActions(look.format(report), *change))
    begun = after[0][0].text
    slip = StepActions(look.format("f(0)"), begun, f"{begun}+1")
    return script(FILE, f"def f(x): return {begun}\n", done, [answer for _, _, answer in after], slip)


ENTRY = family(
    Family("revision", "code", sample, render, parse, level, solve, canonical, call, steps=steps, script=play)
)
