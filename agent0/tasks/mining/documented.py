"""Small repositories without docstrings, drawn from a closed grammar: the same number of the same level is the same
repository. What a function does and what its docstring should say come from the same statements.

Level 1 has two functions of two statements beside what is returned; each further level has one more of a function, at
2 and 3 there are three functions, at 4 four; from 3 on parts of them are in another module.
"""

import random
import textwrap
from collections.abc import Mapping, Sequence

from agent0.tasks.mining.docstring_grammar import (
    FORMS,
    RETURNS,
    STEPS,
    Numbers,
    Statement,
    argument,
    changes_of,
    inexact,
    values_by,
)
from agent0.tasks.mining.drawn_calls import DrawnCall, drawn_calls
from agent0.tasks.mining.generated import CASES, SHOWN_CASES, GeneratedRepository

FUNCTIONS: Mapping[int, int] = {1: 2, 2: 3, 3: 3, 4: 4}
MODULE, PARTS = "series", "parts"
_NAMES = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "larch")
Docstrings = Mapping[str, tuple[Statement, ...]]
"""What the docstring of each function should say."""


def documented(level: int, seed: int, number: int) -> tuple[GeneratedRepository, Docstrings]:
    """Draw repository ``number`` of ``level``, and what its docstrings should say."""
    rng = random.Random(f"documented {level} {seed} {number}")
    hidden, visible = list[DrawnCall](), list[DrawnCall]()
    statements = dict[str, tuple[Statement, ...]]()
    for name in rng.sample(_NAMES, FUNCTIONS[level]):
        calls = drawn_calls(MODULE, name, CASES + SHOWN_CASES, rng)
        hidden += calls[:CASES]
        visible += calls[CASES:]
        statements[name] = _exact(level, [argument(call.expression) for call in calls[:CASES]], rng)
    parts, sources = list[str](), list[str]()
    for name, program in statements.items():
        lines = [_lines(statement, rng) for statement in program]
        if level > 2:
            at = rng.randrange(len(lines) - 1)
            parts.append(_function(f"part_{len(parts)}", [lines[at], "return values"]))
            lines[at] = f"values = part_{len(parts) - 1}(values)"
        sources.append(_function(name, lines))
    modules = {MODULE: "\n\n".join(sources)}
    if parts:
        used = ", ".join(f"part_{at}" for at in range(len(parts)))
        modules = {MODULE: f"from .{PARTS} import {used}\n\n\n{modules[MODULE]}", PARTS: "\n\n".join(parts)}
        modules[PARTS] = modules[PARTS].replace("def part_", "def _part_")
        modules[MODULE] = modules[MODULE].replace("part_", "_part_")
    return GeneratedRepository(level, modules, (), tuple(hidden), tuple(visible), "", frozenset()), statements


def _exact(level: int, inputs: Sequence[Numbers], rng: random.Random) -> tuple[Statement, ...]:
    """Draw statements until each of them matters to what ``inputs`` give, and so does every change of it."""
    while True:
        forms = [*rng.sample(STEPS, level + 1), rng.choice(RETURNS)]
        statements = tuple(_drawn(form, rng) for form in forms)
        expected = values_by(statements, inputs)
        changed = (values_by(other, inputs) for at in range(len(forms)) for other in changes_of(statements, at))
        if not inexact(statements, inputs, expected) and len(set(map(str, expected))) > 2 and expected not in changed:
            return statements


def _drawn(form: str, rng: random.Random) -> Statement:
    bounds = zip(FORMS[form].first, FORMS[form].last, strict=True)
    return Statement(form, tuple(rng.randint(first, last) for first, last in bounds))


def _lines(statement: Statement, rng: random.Random) -> str:
    return rng.choice(FORMS[statement.form].lines).format(**dict(zip("ab", statement.numbers, strict=False)))


def _function(name: str, lines: Sequence[str]) -> str:
    return f"def {name}(values):\n{textwrap.indent(chr(10).join(lines), '    ')}\n"
