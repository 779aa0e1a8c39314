"""Which tasks may never be trained on. The split is a property of a task's canonical form, so it holds for ever and
for every run: a form in validation or test is in no training set, the built-in model's own included."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent0.families import Family, asked
from events.values import Split, Task

VALIDATION_PERCENT = 8
TEST_PERCENT = 8
TRIES = 5000
"""Draws in a row without a new task; with 8 % of a space in a split, so many misses mean that the space is used up."""


def split_of(canonical: str) -> Split:
    """train (84 %), validation (8 %) or test (8 %), by the sha256 of the canonical form."""
    place = int.from_bytes(hashlib.sha256(canonical.encode()).digest()[:8], "big") % 100
    if place < VALIDATION_PERCENT:
        return "validation"
    return "test" if place < VALIDATION_PERCENT + TEST_PERCENT else "train"


def task_of(family: Family, question: str) -> Task | None:
    """The task that ``question`` asks, None where it is not one of ``family``."""
    params = family.parse(question)
    if params is None:
        return None
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
    beyond: bool = False,
) -> list[Task]:
    """``n`` different short tasks of ``split``, or ``long`` ones, equal over domains, then over families and levels.
    ``names``: of these families only, and of the domains that they are of; ``levels``: of these only;
    ``beyond``: drawn by ``Family.beyond``, of families that have it.

    Raises:
        ValueError: a family's level has too few forms in this split, or a domain has no family with these levels.
    """
    rng = random.Random(f"heldout {split} {seed}")
    tasks: list[Task] = []
    chosen = [domain for domain in domains if not names or asked(domain, names, long)]
    for place, domain in enumerate(chosen):
        entries = _beyond(asked(domain, names, long)) if beyond else [*asked(domain, names, long).values()]
        cells = [(e, level) for e in entries for level in range(1, e.levels + 1) if not levels or level in levels]
        if not cells:
            raise ValueError(f"domain {domain} has no family" + (f" of levels {list(levels)}" if levels else ""))
        rng.shuffle(cells)
        share = n // len(chosen) + (place < n % len(chosen))
        for index, (family, level) in enumerate(cells):
            tasks += _cell(family, level, split, share // len(cells) + (index < share % len(cells)), rng)
    return tasks


def _beyond(entries: Mapping[str, Family]) -> list[Family]:
    return [replace(entry, sample=entry.beyond) for entry in entries.values() if entry.beyond]


def _cell(family: Family, level: int, split: Split, n: int, rng: random.Random) -> list[Task]:
    found: dict[str, Task] = {}
    misses = 0
    while len(found) < n and misses < TRIES:
        misses += 1
        params = family.sample(level, rng)
        canonical = family.canonical(params)
        if canonical in found or split_of(canonical) != split or family.level(params) != level:
            continue
        task = task_of(family, family.render(params, rng))
        if task:
            found[canonical], misses = task, 0
    if len(found) < n:
        raise ValueError(f"{family.name} level {level} has only {len(found)} of {n} forms for {split}")
    return list(found.values())
