"""Which tasks are reserved for validation and test and never trained on.

The split is a property of what a task is about, so it is the same for every run: a form in validation or test is in no
training set, that of the built-in model that calls tools included. The one that searches knows all kinds of two-number
tasks (``agent0.infra.tiny.search_examples``).
"""

import hashlib
import random
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

from agent0.events.values import Split, Task
from agent0.tasks.families import Family, Params, families, requested_families

VALIDATION_PERCENT = 8
TEST_PERCENT = 8
TRIES = 5000
"""Draws in a row without a new task; with 8 % of a space in a split, so many misses mean that the space is used up."""

Cell = tuple[Family, int]
"""A family and one of its levels."""


def percentile_of(key: str) -> int:
    """Where a key stands among 100, by its sha256."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % 100


def split_of(key: str) -> Split:
    """The split of a key (``split_key``) by its sha256: train (84 %), validation (8 %) or test (8 %)."""
    percentile = percentile_of(key)
    if percentile < VALIDATION_PERCENT:
        return "validation"
    return "test" if percentile < VALIDATION_PERCENT + TEST_PERCENT else "train"


def half_of(key: str) -> Split:
    """The split of a row of a held-out file by the sha256 of its key: validation or test, half of all each."""
    return "validation" if hashlib.sha256(key.encode()).digest()[0] % 2 else "test"


def split_key(family: Family, params: Params) -> str:
    """The key that decides a task's split: its operands where the family has such, else its canonical form.

    Another target of the same numbers is nearly the same task, so both must be in one split.
    """
    return family.operands(params) if family.operands else family.canonical(params)


def split_of_task(task: Task) -> Split:
    """The split of ``task``; an open one, which no family parses, is split by its wording alone."""
    entry = families(long=None).get(task.family)
    return split_of(split_key(entry, task.params) if entry and entry.operands else task.canonical)


def task_of(family: Family, question: str) -> Task | None:
    """Parse ``question`` as a task of ``family``; None where it is none."""
    params = family.parse(question)
    return None if params is None else task_with(family, question, params)


def task_with(family: Family, question: str, params: Params) -> Task:
    """The task of ``family`` with ``params``, worded as ``question``."""
    return Task(
        question=question,
        domain=family.domain,
        family=family.name,
        level=family.level(params),
        canonical=family.canonical(params),
        params=params,
        kind="long" if family.long else "short",
        subgoals=tuple(step.text for step in family.steps(params)) if family.steps else (),
    )


def heldout(
    split: Split,
    n: int,
    seed: int,
    domains: Sequence[str] = ("math", "logic", "code"),
    *,
    names: Sequence[str] = (),
    long: bool = False,
    levels: Sequence[int] = (),
    without: AbstractSet[str] = frozenset(),
) -> list[Task]:
    """Draw ``n`` different held-out tasks of ``split``, spread equally over domains, then over families and levels.

    Short tasks, or ``long`` ones. ``names``: of these families only, and of the domains that they are of; ``levels``:
    of these only; ``without``: canonical forms that are not drawn. ``seed`` decides the draw.

    Raises:
        ValueError: a family's level has too few forms in this split, or a domain has no family with these levels.
    """
    cells = []
    for domain in (domain for domain in domains if not names or requested_families(domain, names, long)):
        of_domain = [
            (entry, level)
            for entry in requested_families(domain, names, long).values()
            for level in range(1, entry.levels + 1)
            if not levels or level in levels
        ]
        if not of_domain:
            raise ValueError(f"domain {domain} has no family" + (f" of levels {list(levels)}" if levels else ""))
        cells.append(tuple(of_domain))
    return list(_spread(split, n, seed, tuple(cells), frozenset(without)))


@lru_cache(maxsize=16)
def _spread(
    split: Split, n: int, seed: int, cells: tuple[tuple[Cell, ...], ...], without: frozenset[str]
) -> tuple[Task, ...]:
    """``n`` tasks, spread over ``cells`` by domain. Kept, since every evaluation of a run asks for the same ones."""
    rng = random.Random(f"heldout {split} {seed}")
    tasks: list[Task] = []
    for number, of_domain in enumerate(cells):
        shuffled = [*of_domain]
        rng.shuffle(shuffled)
        share = n // len(cells) + (number < n % len(cells))
        for index, (family, level) in enumerate(shuffled):
            size = share // len(shuffled) + (index < share % len(shuffled))
            tasks += _drawn_tasks(family, level, size, split, without, rng)
    return tuple(tasks)


def _drawn_tasks(
    family: Family, level: int, n: int, split: Split, without: AbstractSet[str], rng: random.Random
) -> list[Task]:
    tasks_by_form: dict[str, Task] = {}
    misses = 0
    while len(tasks_by_form) < n and misses < TRIES:
        misses += 1
        params = family.sample(level, rng)
        canonical = family.canonical(params)
        is_new = canonical not in tasks_by_form and canonical not in without
        if not is_new or split_of(split_key(family, params)) != split or family.level(params) != level:
            continue
        task = task_of(family, family.render(params, rng))
        if task:
            tasks_by_form[canonical], misses = task, 0
    if len(tasks_by_form) < n:
        raise ValueError(f"{family.name} level {level} has only {len(tasks_by_form)} of {n} forms left in this split")
    return list(tasks_by_form.values())
