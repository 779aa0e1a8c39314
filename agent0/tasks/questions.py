"""Rows of a file and passages of documents as tasks: how many an iteration asks, and in which order."""

import random
from functools import lru_cache

from agent0.settings import RunConfig


def rows_of_iteration(config: RunConfig) -> int:
    """How many of an iteration's ``tasks`` are rows: its first slots."""
    plan = config.questions
    return max(1, round(plan.share * config.tasks)) if plan.file else 0


def passages_of_iteration(config: RunConfig) -> int:
    """How many of an iteration's tasks are about passages of documents: its slots behind those of rows."""
    plan, rest = config.documents, config.tasks - rows_of_iteration(config)
    return min(rest, max(1, round(plan.share * rest))) if plan.folder else 0


def place(number: int, rows: int, seed: int, levels: tuple[int, ...] = ()) -> tuple[int, int]:
    """Return epoch and index, both from 0, of the row that a run with ``seed`` asks as ``number``, from 0, of a file
    with ``rows`` rows for training. An epoch asks each of them once, in an order of its own; with their ``levels``
    from the lowest to the highest."""
    epoch, position = divmod(number, rows)
    return epoch, _order(seed, epoch, rows, levels)[position]


@lru_cache(maxsize=8)
def _order(seed: int, epoch: int, rows: int, levels: tuple[int, ...]) -> list[int]:
    indexes = list(range(rows))
    random.Random(f"questions {seed} {epoch}").shuffle(indexes)
    return sorted(indexes, key=lambda index: levels[index]) if levels else indexes
