"""Benchmarks: rows of files that a user names, asked as they are and judged by what they say. One file each.

A benchmark never trains anybody. Rows are read strictly (file, line and field are named), and each file's digest goes
into the log with the scores.
"""

import functools
import importlib
import json
import pkgutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agent0.errors import ConfigError
from agent0.grading import Grade
from agent0.ports import Sandbox
from agent0.programs import Problem

Row = Mapping[str, Any]
Domain = Literal["math", "logic", "code", "text"]


@dataclass(frozen=True)
class Item:
    """One thing to be asked. ``question`` is all that a model is told, ``reference`` a reply that is right, ``cluster``
    what items that belong together share (empty: the item alone)."""

    id: str
    question: str
    gold: str
    reference: str
    labels: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    problem: Problem | None = None
    cluster: str = ""


Judge = Callable[[Item, str, str | None, Sandbox], Awaitable[Grade]]
"""(item, whole reply, extracted answer, the verifier's sandbox) to a grade."""


@dataclass(frozen=True)
class Benchmark:
    """``files`` are names looked for in the user's folder, the first that is there is read. ``fields`` are those each
    row must have, as text unless named in ``lists``; ``read`` may raise KeyError, TypeError or ValueError."""

    name: str
    title: str
    domain: Domain
    files: tuple[str, ...]
    fields: tuple[str, ...]
    read: Callable[[Row], Item]
    judge: Judge
    licence: str
    source: str
    lists: tuple[str, ...] = ()
    ships: bool = True
    """False: for evaluation only, never to be passed on."""


_benchmarks: dict[str, Benchmark] = {}


def benchmark(entry: Benchmark) -> Benchmark:
    """Register ``entry``. Raises ValueError where the name is taken."""
    if entry.name in _benchmarks and _benchmarks[entry.name] is not entry:
        raise ValueError(f"two benchmarks are named {entry.name}")
    _benchmarks[entry.name] = entry
    return entry


def benchmarks() -> dict[str, Benchmark]:
    """All benchmarks by name, sorted."""
    _import_all()
    return {name: _benchmarks[name] for name in sorted(_benchmarks)}


@functools.cache
def _import_all() -> None:
    for found in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{found}")


def read_items(entry: Benchmark, text: str, file: str) -> list[Item]:
    """Items of a file of JSON lines (cut at line feeds only: text may hold other line breaks).

    Raises:
        ConfigError: a line that is no row of ``entry``, an id that occurs twice, or no row at all.
    """
    out: list[Item] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        item = _item(entry, line, f"{file}, line {number}")
        if item.id in seen:
            raise ConfigError(f"{file}, line {number}: id {item.id!r} is that of line {seen[item.id]}.")
        seen[item.id] = number
        out.append(item)
    if not out:
        raise ConfigError(f"{file} has no rows.", "It is read as one JSON object a line.")
    return out


def _item(entry: Benchmark, line: str, where: str) -> Item:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: no JSON.", f"{error}.") from error
    if not isinstance(row, dict):
        raise ConfigError(f"{where}: no JSON object.")
    for field in entry.fields:
        if not isinstance(row.get(field), list if field in entry.lists else str):
            kind = "a list" if field in entry.lists else "text"
            raise ConfigError(
                f"{where}: field {field!r} is missing or not {kind}.", f"Wanted: {', '.join(entry.fields)}."
            )
    try:
        item = entry.read(row)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ConfigError(f"{where}: no row of {entry.name}.", f"{type(error).__name__}: {error}.") from error
    if not item.gold.strip():
        raise ConfigError(f"{where}: the gold answer is empty.")
    return item


def chosen(names: Sequence[str]) -> list[Benchmark]:
    """Benchmarks of these names, in their order.

    Raises:
        ConfigError: there is no such benchmark.
    """
    known = benchmarks()
    for name in names:
        if name not in known:
            raise ConfigError(
                f"There is no benchmark {name[:80]!r}.", f"Known: {', '.join(known)}.", "See: agent0 bench list"
            )
    return [known[name] for name in names]
