"""Task families: what there is, some of their tasks, and whether a level is fit to train on."""

import asyncio
import random
from dataclasses import asdict
from threading import Lock
from typing import Annotated

from fastapi import APIRouter, Path, Query

from agent0.api.conditional import LIMIT, Counted, Limit, Page, counted_page
from agent0.api.context import Context
from agent0.api.problems import responses
from agent0.assembly.environments.family_validation import validate_family
from agent0.config.setting_entries import nearest
from agent0.errors import NotFoundError, OperationError
from agent0.projections.base import Row
from agent0.tasks.families import Family, families
from agent0.tasks.seeds import derive_seed

Name = Annotated[str, Path(max_length=200)]
Seconds = Annotated[float, Query(ge=0.001, le=60, description="that a task and its verdict may take")]
TASKS, COUNT = 3, 20
"""Tasks of each level that are shown, and those that a validation draws."""
router = APIRouter(prefix="/v1/families", tags=["tasks"], responses=responses())
_validating = Lock()


@router.get("", operation_id="list_families")
def listed(limit: Limit = LIMIT, after: Counted = "") -> Page:
    """Task families by name, with their domains and how many levels they have."""
    rows = [_row(family) for family in families(long=None).values()]
    return counted_page(lambda n: rows[:n], after, limit)


@router.get("/{family}", operation_id="show_family")
def shown(family: Name) -> Row:
    """One family with some tasks of each level: the same at every call."""
    chosen = _named(family)
    return {**_row(chosen), "tasks": [_task(chosen, level, n) for level in _levels(chosen) for n in range(TASKS)]}


@router.get("/{family}/validation", operation_id="validate_family")
def validated(
    context: Context, family: Name, level: Annotated[int, Query(ge=1, le=1000)] = 1, seconds: Seconds = 1.0
) -> Row:
    """Whether a level is fit to train on, as `agent0 family validate` says it: `problems` is empty then."""
    chosen = _named(family)
    if level > chosen.levels:
        raise NotFoundError(f"{chosen.name} has no level {level}.", f"It has {chosen.levels}.")
    if not _validating.acquire(blocking=False):
        raise OperationError(
            "A family is validated already.", "Each has a sandbox of its own.", "Ask again in a moment."
        )
    try:
        (result,) = asyncio.run(validate_family(context.settings, chosen, [level], COUNT, 0, seconds))
    finally:
        _validating.release()
    return asdict(result)


def _named(name: str) -> Family:
    registered = families(long=None)
    if name not in registered:
        raise NotFoundError(f"There is no family {name[:80]!r}.", fix=nearest(name, list(registered)))
    return registered[name]


def _levels(family: Family) -> range:
    return range(1, min(family.levels, 4) + 1)


def _row(family: Family) -> Row:
    return {
        "family": family.name,
        "domain": family.domain,
        "kind": family.kind,
        "levels": family.levels,
        "long": family.long,
    }


def _task(family: Family, level: int, number: int) -> Row:
    rng = random.Random(derive_seed("shown", family.name, level, number))
    return {"level": level, "question": family.render(family.sample(level, rng), rng)}
