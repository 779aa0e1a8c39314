"""The cells of a grid: which runs there are, how they are named, and what is the same in all of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent0.errors import ConfigError
from agent0.experiments.ablations import NAME, Arm, Grid
from agent0.settings import RunConfig
from events.base import TOKEN

MOST_SEEDS = 100


@dataclass(frozen=True)
class Cell:
    """An arm with a seed: one run, whose id follows from the grid's name, the arm and the seed."""

    arm: str
    seed: int
    run: str
    config: RunConfig

    @property
    def name(self) -> str:
        """Of its folder, and for people."""
        return f"{self.arm}-{self.seed}"


def cells(name: str, plans: Mapping[str, RunConfig], seeds: Sequence[int]) -> list[Cell]:
    """All cells of the grid ``name``, seed by seed: a grid that is stopped half-way has whole pairs.

    Raises:
        ConfigError: no such name, no seed, or arms that cannot be compared.
    """
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"A grid cannot be named {name[:80]!r}.", fix="Use small letters, digits and '-', at most 30."
        )
    if not seeds:
        raise ConfigError("There is no seed.", "A cell is an arm with a seed.", "Say --seeds 0,1,2.")
    if len(set(seeds)) != len(seeds):
        raise ConfigError("A seed is named twice.", "The same cell again says nothing new.", "Name each seed once.")
    _check(plans)
    return [_cell(name, arm, seed, plans[arm]) for seed in seeds for arm in plans]


def _cell(name: str, arm: str, seed: int, plan: RunConfig) -> Cell:
    run = f"{name}-{arm}-{seed}"
    if not TOKEN.fullmatch(run):
        raise ConfigError(f"{run[:80]!r} is too long for a run.", fix="Choose a shorter --name.")
    return Cell(arm, seed, run, plan.model_copy(update={"seed": seed}))


def seeds_of(text: str) -> tuple[int, ...]:
    """``0,1,2`` or ``0-4``.

    Raises:
        ConfigError: anything else, or more than ``MOST_SEEDS``.
    """
    fix = "Write --seeds 0,1,2 or --seeds 0-4."
    out: list[int] = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        found = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        if not found:
            raise ConfigError(f"{part[:40]!r} is no seed.", "A seed is a whole number from 0 on.", fix)
        first, last = int(found[1]), int(found[2] or found[1])
        if not 0 <= last - first < MOST_SEEDS:
            raise ConfigError(f"{part!r} is no row of seeds.", f"There may be {MOST_SEEDS}, upwards.", fix)
        out += range(first, last + 1)
    return tuple(out)


def chosen(grid: Grid, only: Sequence[str]) -> tuple[Arm, ...]:
    """Its arms, or those named, in its own order.

    Raises:
        ConfigError: one that it does not have.
    """
    known = [arm.name for arm in grid.arms]
    for name in only:
        if name not in known:
            raise ConfigError(f"{grid.name} has no arm {name[:80]!r}.", f"Its arms: {', '.join(known)}.")
    return tuple(arm for arm in grid.arms if not only or arm.name in only)


def with_models(arms: Sequence[Arm], models: Sequence[str]) -> tuple[Arm, ...]:
    """Each arm with the profile's own model, then with each of ``models`` (``MODEL`` or ``PROVIDER:MODEL``) for both
    roles.

    Raises:
        ConfigError: models whose short names are the same, or none.
    """
    named: dict[str, Mapping[str, str]] = {}
    for text in models:
        short = re.sub(r"[^a-z0-9]+", "-", text.rstrip("/").rpartition("/")[2].rpartition(":")[2].lower()).strip("-")
        if not short or short in named:
            why = "Its name is empty, or that of another model." if text else "It is empty."
            raise ConfigError(f"{text[:80]!r} cannot be a model of a grid.", why, "Write MODEL or PROVIDER:MODEL.")
        named[short] = _model(text)
    more = [
        replace(arm, name=f"{arm.name}-{short}"[:30].rstrip("-"), settings={**arm.settings, **keys})
        for short, keys in named.items()
        for arm in arms
    ]
    return (*arms, *more)


def _model(text: str) -> dict[str, str]:
    provider, colon, model = text.partition(":")
    if not colon:
        return {f"{role}.model": text for role in ("student", "teacher")}
    keys = {f"{role}.provider": provider for role in ("student", "teacher")}
    return keys | {f"{role}.model": model for role in ("student", "teacher")}


def _check(plans: Mapping[str, RunConfig]) -> None:
    first = next(iter(plans), "")
    for name, plan in plans.items():
        if plan.evaluation != plans[first].evaluation:
            why = "Arms are compared on the same held-out items, scored alike."
            raise ConfigError(f"The arm {name} scores otherwise than {first}.", why, "Leave run.evaluation alone.")
        if plan.on_failure == "wait" or plan.verification.undecided == "ask":
            key = "on_failure" if plan.on_failure == "wait" else "verification.undecided"
            raise ConfigError(
                f"The arm {name} would wait for a person.", f"run.{key} says so.", "Nobody watches a grid's runs."
            )


def effort(plan: RunConfig) -> dict[str, int]:
    """What is asked of a cell."""
    return {
        "iterations": plan.iterations,
        "tasks": plan.tasks,
        "attempts": plan.attempts,
        "in_all": plan.iterations * plan.tasks * plan.attempts,
    }


def stated(plans: Mapping[str, RunConfig]) -> str:
    """In words, whether all arms are asked for equal compute, and what that is. Tasks that are refused get no attempt,
    so what was done may be less."""
    asked = {name: effort(plan) for name, plan in plans.items()}
    if len({tuple(one.values()) for one in asked.values()}) == 1:
        told = f"Asked of every cell alike: {_words(next(iter(asked.values())))}"
    else:
        told = "NOT equal compute: " + "; ".join(f"{name} {_words(one)}" for name, one in asked.items())
    if len({(plan.student.provider, plan.student.model) for plan in plans.values()}) > 1:
        told += "; but models differ, and with them what an attempt costs"
    return f"{told}. What it took is in the table of cost."


def _words(asked: Mapping[str, int]) -> str:
    told = "{iterations} iterations of {tasks} tasks with {attempts} attempts each ({in_all:,} attempts at most)"
    return told.format(**asked)


def same_cell(old: RunConfig, new: RunConfig) -> list[str]:
    """Settings by dotted key in which a cell that was begun differs from what is asked now."""
    return sorted(_differing("", old.model_dump(mode="json"), new.model_dump(mode="json")))


def _differing(at: str, old: object, new: object) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = {*old, *new}
        return [one for key in keys for one in _differing(f"{at}.{key}".lstrip("."), old.get(key), new.get(key))]
    return [] if old == new else [at]
