"""Small repositories that are drawn, with bugs by mutation: the same number of the same level is the same repository.

Level 1 is a module of three functions with a bug; at 2 functions of other modules call the wrong one, and the statement
names their failures; at 3 a class keeps state as well; at 4 two modules are wrong.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agent0.events.base import sha256
from agent0.tasks.mining.drawn_calls import DrawnCall, drawn_calls
from agent0.tasks.mining.mutations import Mutation, compiles, mutated, mutations_of
from agent0.tasks.mining.templates import KEEPER, TITLES, TO_LIST, TO_NUMBER, Template

LEVELS, BUGS = 4, {4: 2}
CASES, SHOWN_CASES = 30, 2
"""Cases of a function that decide, and further ones that the student has."""
_NAMES = ("basket", "harbor", "meadow", "kettle", "lantern", "orchard", "pebble", "quarry", "saddle", "timber")
_MODULES = ("series", "figures", "reports", "keeper")
AFTER = """

def after(steps):
    keeper = {title}()
    return [getattr(keeper, name)(*arguments) for name, *arguments in steps]
"""
"""What calls of a class's methods are written with."""


@dataclass(frozen=True)
class GeneratedRepository:
    """``modules`` by name as they should be; ``changes``, each a mutation of one of them; the cases that decide, and
    those that the student has. ``title`` is the name of its class, empty for none; ``callers`` are the functions that
    call others."""

    level: int
    modules: Mapping[str, str]
    changes: tuple[Mutation, ...]
    hidden: tuple[DrawnCall, ...]
    visible: tuple[DrawnCall, ...]
    title: str
    callers: frozenset[str]

    @cached_property
    def package(self) -> str:
        """A name of its own: equal repositories with equal bugs have one."""
        digest = sha256(repr((sorted(self.modules.items()), [change.key for change in self.changes])))
        return f"{_NAMES[int(digest[:8], 16) % len(_NAMES)]}_{digest[:10]}"

    def code(self, changes: Sequence[Mutation] = ()) -> dict[str, bytes]:
        """Its files of code, with ``changes``."""
        files = {f"{self.package}/__init__.py": b'"""Work with series of whole numbers."""\n'}
        for name, text in self.modules.items():
            in_module = [change for change in changes if change.path == name]
            files[f"{self.package}/{name}.py"] = mutated(text.encode(), in_module)
        return files

    def prelude(self, module: str) -> str:
        """What the cases of a module call beside its own names."""
        return AFTER.format(title=self.title) if self.title and module == _MODULES[3] else ""

    def examples(self, cases: Sequence[DrawnCall], expected: Mapping[DrawnCall, str]) -> dict[str, bytes]:
        """Test files of ``cases``, one for each module."""
        files = {}
        for module in self.modules:
            in_module = [case for case in cases if case.module == module]
            names = sorted({self.title if case.function == "after" else case.function for case in in_module})
            lines = [f"from {self.package}.{module} import {', '.join(names)}\n{self.prelude(module)}"]
            for number, case in enumerate(in_module, 1):
                test = f"test_{case.function}_{number}"
                lines.append(f"\n\ndef {test}():\n    assert {case.expression} == {expected[case]}\n")
            if in_module:
                files[f"tests/test_{module}.py"] = "".join(lines).encode()
        return files


def generated(level: int, seed: int, number: int) -> GeneratedRepository | None:
    """Draw repository ``number`` of ``level``; None where the draw has no mutation that is Python."""
    rng = random.Random(f"repository {level} {seed} {number}")
    counts = {1: (2, 1), 2: (3, 1), 3: (3, 1), 4: (4, 2)}[level]
    leaves = _leaves(TO_LIST, counts[0], rng), _leaves(TO_NUMBER, counts[1], rng)
    functions = [*leaves[0], *leaves[1]]
    modules = {_MODULES[0]: _joined(source for _, source in (functions if level == 1 else leaves[0]))}
    callers, title = list[tuple[str, str]](), ""
    if level > 1:
        modules[_MODULES[1]] = _joined(source for _, source in leaves[1])
        pairs = [(first, second) for first, _ in leaves[0] for second, _ in functions if first != second]
        callers = [_caller(*pair) for pair in rng.sample(pairs, 2 if level < 4 else 3)]
        modules[_MODULES[2]] = _importing(leaves, [source for _, source in callers])
    if level > 2:
        title, (first, _), (second, _) = rng.choice(TITLES), rng.choice(leaves[0]), rng.choice(leaves[1])
        keeper = KEEPER.format(title=title, first=first, second=second, empty=rng.choice(("0", "-1", "None")))
        modules[_MODULES[3]] = _importing(leaves, [keeper])
    of_module = {name: _MODULES[0] if level == 1 else _MODULES[1] for name, _ in functions}
    of_module |= {name: _MODULES[0] for name, _ in leaves[0]} | {name: _MODULES[2] for name, _ in callers}
    hidden, visible = list[DrawnCall](), list[DrawnCall]()
    for name, module in {**of_module, **({"after": _MODULES[3]} if title else {})}.items():
        drawn = drawn_calls(module, name, CASES + SHOWN_CASES, rng)
        hidden += drawn[:CASES]
        visible += drawn[CASES:]
    changes = _changes(modules, BUGS.get(level, 1), rng)
    names = frozenset(name for name, _ in callers) | ({"after"} if title else set())
    repository = GeneratedRepository(level, modules, changes, tuple(hidden), tuple(visible), title, names)
    sources = repository.code(changes).values()
    return repository if changes and all(map(compiles, sources)) else None


def _changes(modules: Mapping[str, str], bugs: int, rng: random.Random) -> tuple[Mutation, ...]:
    """A mutation of each of ``bugs`` modules, of the kinds alike; functions that only call others are left alone."""
    wrong = rng.sample([name for name in modules if name != _MODULES[2]], bugs)
    changes = []
    for name in wrong:
        kinds: dict[str, list[Mutation]] = {}
        for each in mutations_of(name, modules[name].encode()):
            kinds.setdefault(each.kind, []).append(each)
        changes += [rng.choice(kinds[rng.choice(sorted(kinds))])] if kinds else []
    return tuple(changes)


def _leaves(templates: Mapping[str, Template], count: int, rng: random.Random) -> list[tuple[str, str]]:
    """(name, source) of ``count`` different functions."""
    drawn = []
    for key in rng.sample(sorted(templates), count):
        template = templates[key]
        name = rng.choice(template.names)
        drawn.append((name, template.source(name, rng.randint(*template.a), rng.randint(*template.b))))
    return drawn


def _caller(first: str, second: str) -> tuple[str, str]:
    name = f"{second}_of_{first}"
    return (
        name,
        f'def {name}(values):\n    """Return {second} of {first} of values."""\n    return {second}({first}(values))\n',
    )


def _importing(leaves: Sequence[Sequence[tuple[str, str]]], sources: Sequence[str]) -> str:
    """A module with imports of what it uses."""
    text = _joined(sources)
    lines = []
    for module, functions in zip(_MODULES, leaves, strict=False):
        if used := [name for name, _ in functions if f"{name}(" in text]:
            lines.append(f"from .{module} import {', '.join(sorted(used))}\n")
    return "".join(lines) + "\n\n" + text


def _joined(sources: "Iterator[str] | Sequence[str]") -> str:
    return "\n\n".join(sources)
