"""Benchmarks: rows of files that a user names, or items generated from a seed, and how replies are graded. One file
each.

A benchmark never trains anybody. Rows are read strictly (file, line and field are named), and the digest of each file,
or of the generated items, goes into the log with the scores.
"""

import json
import operator
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks.rows import ColumnError, Row, RowError, files_in, read_rows
from agent0.evaluation.benchmarks.rows.published import Convert, as_it_is
from agent0.events.base import sha256
from agent0.grading import Grade
from agent0.ports.sandbox import Sandbox
from agent0.registry import Registry
from agent0.verification.programs import Problem

Domain = Literal["math", "logic", "code", "text"]


@dataclass(frozen=True)
class Item:
    """One benchmark item. ``question`` is all that a model reads, ``reference`` a reply that is right, ``cluster`` what
    related items share (empty: the item alone).

    ``stem`` is a question without its ``choices``; ``facts`` are fields of the row, by name; ``files`` lie in the work
    folder when an attempt begins; ``data`` is what the judge needs besides. ``restatements`` is the row's question
    without words of ours, where ``question`` has some: all of it first, then what would be the same question by itself.
    """

    id: str
    question: str
    gold: str
    reference: str
    labels: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    problem: Problem | None = None
    cluster: str = ""
    stem: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    data: str = ""
    restatements: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The row's question in each form in which it could be repeated, all of it first, the barest last."""
        return self.restatements or (self.stem or self.question,)


Judge = Callable[[Item, str, str | None, Sandbox], Awaitable[Grade]]
"""(item, whole reply, extracted answer, the verifier's sandbox) to a grade."""


@dataclass(frozen=True)
class Benchmark:
    """A registered benchmark: either ``files``, of which the first that is in the user's folder is read, or ``make``.

    ``fields`` are those each row must have, as text unless named in ``lists``; ``read`` may raise KeyError, TypeError
    or ValueError; ``about`` are fields that become an item's facts.
    """

    name: str
    title: str
    domain: Domain
    judge: Judge
    licence: str
    source: str
    files: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    """Files that are read together, as many as are there, where none of ``files`` is."""
    fields: tuple[str, ...] = ()
    read: Callable[[Row], Item] | None = None
    lists: tuple[str, ...] = ()
    convert: Convert = as_it_is
    """A row as it was published to one with ``fields``; may raise as ``read`` may."""
    about: tuple[str, ...] = ("subject", "level")
    make: Callable[[int, int], Sequence[Item]] | None = None
    """(n, seed) to the first n of its items; raises ConfigError where what it is made with is not installed."""
    size: int = 0
    """Items that are made where nobody says how many."""
    package: str = ""
    """What makes the items, where that is not Agent0: its version is recorded."""
    part: "Callable[[str], Benchmark] | None" = None
    """The benchmark that ``name:part`` is. Raises ConfigError where there is no such part."""
    ships: bool = True
    """False: for evaluation only, never to be passed on."""
    in_folders: bool = False
    """Each item's ``data`` is a task that asks to change a work folder, or to act in an environment, over turns: its
    row's verifier decides, and it is never asked without tools. ``source`` is the folder that has its files."""
    in_environment: bool = False
    """Each item's ``data`` is a task whose answer an environment decides."""


_benchmarks = Registry[str, Benchmark]("benchmarks", __name__, same=operator.is_)


def benchmark(entry: Benchmark) -> Benchmark:
    """Register a benchmark under its name; returns it.

    Raises:
        ValueError: another benchmark has this name.
    """
    return _benchmarks.add(entry.name, entry)


def benchmarks() -> dict[str, Benchmark]:
    """Return every registered benchmark by its name, sorted by name."""
    return _benchmarks.all()


def read_items(entry: Benchmark, text: str, file: str) -> list[Item]:
    """Read the items of a file of rows, laid out as its publisher does or as ``bench fetch`` writes them.

    Raises:
        ConfigError: what is no row of ``entry``, an id that occurs twice, or no row at all.
    """
    items: dict[str, Item] = {}
    places: dict[str, str] = {}
    for where, row in converted(entry, text, file):
        item = _item(entry, row, where)
        if item.id in items:
            raise ConfigError(f"{where}: id {item.id!r} is that of {places[item.id]}.")
        items[item.id], places[item.id] = item, where.removeprefix(f"{file}, ")
    if not items:
        raise ConfigError(f"{file} has no rows.", "It is read as JSON objects, one a line or in one list.")
    return list(items.values())


def converted(entry: Benchmark, text: str, file: str) -> list[tuple[str, Row]]:
    """Read the rows of a file in the layout of ``entry.fields``, each with where it stands.

    Raises:
        ConfigError: what is no JSON or no row, named by file and line.
    """
    return [
        (where, _converted(entry, row, name, number, where))
        for name, rows in files_in(text, file)
        for number, (where, row) in enumerate(read_rows(rows, name))
    ]


def read_item(entry: Benchmark, published: Row, file: str, number: int, where: str) -> Item:
    """Read the item of one row, ``number`` from 0 in ``file``.

    Raises:
        RowError: it is no row of ``entry``.
    """
    return _item(entry, _converted(entry, published, file, number, where), where)


def _converted(entry: Benchmark, published: Row, file: str, number: int, where: str) -> Row:
    try:
        row = entry.convert(published, file, number)
    except KeyError as error:
        raise _no_row(entry, published, where, f"Field {error} is missing", str(error.args[0])) from error
    except ColumnError as error:
        why = f"Column {error.column!r}: {error}" if error.column else f"{str(error)[:1].upper()}{str(error)[1:]}"
        raise _no_row(entry, published, where, why, error.column) from error
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise _no_row(entry, published, where, f"{type(error).__name__}: {error}") from error
    for name in entry.fields:
        if not isinstance(row.get(name), list if name in entry.lists else str):
            kind = "a list" if name in entry.lists else "text"
            raise _no_row(entry, published, where, f"Field {name!r} is missing or not {kind}", name)
    return row


def _no_row(entry: Benchmark, row: Row, where: str, why: str, column: str = "") -> RowError:
    fields = ", ".join(map(str, row))[:400]
    fix = f"Read are {', '.join(entry.fields)}; or rows as they were published: {entry.source}"
    return RowError(where, column, f"no row of {entry.name}.", f"{why}. It has {fields}.", fix)


def _item(entry: Benchmark, row: Row, where: str) -> Item:
    assert entry.read is not None  # noqa: S101 (it has fields, so it has rows)
    try:
        item = entry.read(row)
    except (KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
        column = getattr(error, "column", "")
        why = f"Column {column!r}: {error}." if column else f"{type(error).__name__}: {error}."
        raise RowError(where, column, f"no row of {entry.name}.", why) from error
    if not item.gold.strip():
        raise RowError(where, "answer", "the gold answer is empty.")
    return replace(item, facts={**_facts(row, entry.about), **item.facts})


def _facts(row: Row, names: Sequence[str]) -> dict[str, str]:
    return {name: str(row[name])[:80] for name in names if isinstance(row.get(name), str | int)}


def make_items(entry: Benchmark, n: int, seed: int) -> tuple[list[Item], str]:
    """Generate the first ``n`` items of a benchmark (0: its default size); returns them and their digest.

    Raises:
        ConfigError: the package that generates them is not installed.
    """
    assert entry.make is not None  # noqa: S101 (for those only)
    items = list(entry.make(n or entry.size, seed))
    return items, sha256(json.dumps([_digested(item) for item in items], sort_keys=True))


def drawn(entry: Benchmark, items: Sequence[Item], n: int, seed: int) -> list[Item]:
    """Draw ``n`` items with ``seed``, in their own order; all where ``n`` is 0 or there are no more."""
    if not 0 < n < len(items):
        return list(items)
    kept = set(random.Random(f"{seed} {entry.name}").sample(range(len(items)), n))
    return [item for index, item in enumerate(items) if index in kept]


def _digested(item: Item) -> dict[str, object]:
    """All that is asked and judged; ``restatements`` is neither."""
    digested = asdict(item) | {"files": {name: sha256(data) for name, data in item.files.items()}}
    return {name: value for name, value in digested.items() if name != "restatements"}


def chosen(names: Sequence[str]) -> list[Benchmark]:
    """Look up benchmarks by name, in the order given; ``name:part`` is a part of one that has parts.

    Raises:
        ConfigError: there is no such benchmark.
    """
    registered = benchmarks()
    return [_chosen(name, registered) for name in names]


def _chosen(name: str, registered: Mapping[str, Benchmark]) -> Benchmark:
    whole, colon, part = name.partition(":")
    if whole not in registered:
        raise ConfigError(
            f"There is no benchmark {name[:80]!r}.", f"Known: {', '.join(registered)}.", "See: agent0 bench list"
        )
    if not colon:
        return registered[whole]
    if (choose := registered[whole].part) is None:
        raise ConfigError(f"The benchmark {whole} has no parts.", fix=f"Name it alone: {whole}")
    return choose(part)
