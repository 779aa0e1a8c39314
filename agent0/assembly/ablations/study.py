"""Part of the rim: carries a grid, cell by cell, each in a process and a data folder of its own. What is finished stays
finished: the same command goes on with the rest, whatever was killed."""

import asyncio
import contextlib
import fcntl
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

from agent0.assembly.ablations.base_models import make_bases, needed, told_bases, with_base
from agent0.assembly.ablations.ablation_run import PLAN, RESULT, Plan, heard, result
from agent0.assembly.ablations.chance_controls import chances_of
from agent0.assembly.models.protocol import check_fresh, tasks_of
from agent0.assembly.runtime.child_process import child, last_words, size
from agent0.assembly.runtime.providers import check_models
from agent0.assembly.runtime.tool_policy import with_policy
from agent0.assembly.validate.run_config import check_names
from agent0.config.loading import amended
from agent0.errors import Agent0Error, ConfigError, OperationError
from agent0.experiments.ablation_cells import Cell, cells, chosen, same_cell, stated, with_models
from agent0.experiments.ablation_results import Outcome, against, cost, curves, seen, told_arms
from agent0.experiments.ablations import Arm, Grid
from agent0.experiments.training_gain import Chance, skill
from agent0.settings import RunConfig, Settings

SAID = "said.txt"
"""In a cell's folder: what its processes wrote to stderr."""
GRACE_S = 5.0
"""How long its last words may take once it has ended: what it started may hold its stdout a little longer."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """A grid as a person wants it. ``given``: settings by dotted key that
    were typed; ``profile``: as it was typed."""

    grid: Grid
    name: str
    profile: str
    seeds: tuple[int, ...]
    given: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    jobs: int = 1


@dataclass
class _Work:
    """A grid under way: seconds that finished cells took, and when each running one will be done."""

    asked: Asked
    folder: Path
    cells: list[Cell]
    tell: Tell
    done: dict[str, Outcome] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    took: list[float] = field(default_factory=list)
    began: dict[str, float] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)

    def place(self, cell: Cell) -> Path:
        return self.folder / cell.name

    def stand(self) -> str:
        """``3 of 12 cells done, about 4 min left``."""
        from agent0.assembly.runtime.progress import duration

        left = self.left_s()
        failed = f", {len(self.failed)} failed" if self.failed else ""
        told = f"{len(self.done)} of {len(self.cells)} cells done{failed}"
        return told if left is None or not left else f"{told}, about {duration(left)} left"

    def left_s(self) -> float | None:
        """From what cells took and say they will take; None until one of them tells."""
        now = monotonic()
        known = [*self.took, *(end - self.began[name] for name, end in self.ends.items() if name in self.began)]
        if not known:
            return None
        mean = sum(known) / len(known)
        ends = (self.ends.get(name, begun + mean) for name, begun in self.began.items())
        running = sum(max(0.0, end - now) for end in ends)
        waiting = len(self.cells) - len(self.done) - len(self.failed) - len(self.began)
        return (running + waiting * mean) / max(1, min(self.asked.jobs, waiting + len(self.began)))


def plans_of(base: RunConfig, arms: Sequence[Arm]) -> dict[str, RunConfig]:
    """The settings of each arm.

    Raises:
        ConfigError: a setting that is none, does not fit, or names what there is not; the arm is named.
    """
    plans = {}
    for arm in arms:
        try:
            plans[arm.name] = amended(base, arm.settings)
            check_names(plans[arm.name])
        except ConfigError as error:
            raise ConfigError(f"The arm {arm.name} is not possible: {error.what}", error.why, error.fix) from error
    return plans


async def run_grid(settings: Settings, asked: Asked, tell: Tell = lambda _: None) -> dict[str, Any]:
    """Carry what is not finished, and tell what all finished cells came to. A cell that fails is named in ``failed``,
    and the others go on.

    Raises:
        ConfigError: arms, seeds or a name that cannot be.
        OperationError: another process carries this grid, or a cell of it was begun under other settings.
    """
    from infra.log.server_folder import write

    folder, plans, all_cells = await _laid_out(settings, asked)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _only_one(asked.name, folder):
        course = asked.grid.course
        bases = await make_bases(folder, course, needed(all_cells, course), asked.jobs, tell) if course else {}
        work = _Work(asked, folder, [with_base(cell, course, bases) for cell in all_cells], tell)
        for cell in work.cells:
            _prepare(work, cell)
        tell(f"Grid {asked.name}: {stated(plans)} In {folder}. {work.stand()}.")
        await _carry_all(work)
        chances = chances_of(asked.grid.sets, next(iter(plans.values())), bases)
        found = _found(work, plans, chances) | (told_bases(course, bases) if bases else {})
        write(folder / "grid.json", json.dumps(found, indent=1))
    return found


async def _laid_out(settings: Settings, asked: Asked) -> tuple[Path, dict[str, RunConfig], list[Cell]]:
    """Where, under which settings, which cells. Every mistake shows before anything is begun."""
    arms = with_models(chosen(asked.grid, asked.only), asked.models)
    typed = {key.removeprefix("run.") for key in asked.given}
    for arm in arms:
        if both := sorted(typed & {key.removeprefix("run.") for key in arm.settings} | typed & {"seed"}):
            why = "Seeds are named by --seeds." if both == ["seed"] else f"The arm {arm.name} sets it."
            raise ConfigError(f"run.{both[0]} has no effect.", why, "Leave it out of --set.")
    own = {key: text for key, text in asked.grid.settings.items() if key.removeprefix("run.") not in typed}
    base = (await with_policy(settings)).run
    plans = plans_of(amended(base, own), arms)
    all_cells = cells(asked.name, plans, asked.seeds)
    for plan in plans.values():
        check_models(plan)
        for exam in (*asked.grid.exams, *asked.grid.base_exams):
            tasks_of(exam, plan)
        check_fresh(asked.grid.sets, plan)
    return settings.home / "grids" / asked.name, plans, all_cells


@contextmanager
def _only_one(name: str, folder: Path) -> Iterator[None]:
    with (folder / "grid.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = f"Another process carries it, in {folder}."
            raise OperationError(f"Grid {name} is under way.", why, "Wait for it, or choose another --name.") from None
        yield


def _prepare(work: _Work, cell: Cell) -> None:
    """Its folder with its plan. One that was begun otherwise is never gone on with."""
    folder, grid = work.place(cell), work.asked.grid
    exams = grid.exams, grid.base_exams if cell.arm == work.cells[0].arm else ()
    if (folder / PLAN).exists():
        begun = Plan.read(folder)
        if changed := same_cell(begun.cell.config, cell.config):
            why = f"Its run was begun with other settings: {', '.join(changed[:3])}."
            fix = "Choose another --name, or move that folder away."
            raise OperationError(f"Cell {cell.name} of grid {work.asked.name} is another one.", why, fix)
        if exams != (begun.exams, begun.base_exams):  # its run stands; what was not sat is still to be sat
            (folder / RESULT).unlink(missing_ok=True)
            replace(begun, exams=exams[0], base_exams=exams[1]).write(folder)
    else:
        folder.mkdir(mode=0o700, exist_ok=True)
        rest = {k: v for k, v in work.asked.given.items() if not k.startswith("run.") and k not in ("home", "profile")}
        Plan(cell, work.asked.profile, rest, *exams).write(folder)
    if found := result(folder):
        work.done[cell.name] = found
        work.took.append(found.cost["wall_s"])


async def _carry_all(work: _Work) -> None:
    waiting = asyncio.Queue[Cell]()
    for cell in work.cells:
        if cell.name not in work.done:
            waiting.put_nowait(cell)
    async with asyncio.TaskGroup() as group:
        for _ in range(min(work.asked.jobs, waiting.qsize())):
            group.create_task(_take(work, waiting))


async def _take(work: _Work, waiting: "asyncio.Queue[Cell]") -> None:
    """One after the other, until none is left."""
    with contextlib.suppress(asyncio.QueueEmpty):
        while True:
            cell = waiting.get_nowait()
            work.began[cell.name] = monotonic()
            why = await _carried(work, cell)
            began = work.began.pop(cell.name)
            work.ends.pop(cell.name, None)
            if found := result(work.place(cell)):
                work.done[cell.name] = found
                work.took.append(monotonic() - began)
                work.tell(f"{cell.name} is done. {work.stand()}.")
            else:
                work.failed[cell.name] = why
                work.tell(f"{cell.name} failed: {why} The rest goes on. {work.stand()}.")


async def _carried(work: _Work, cell: Cell) -> str:
    """What was wrong; empty where nothing was."""
    folder = work.place(cell)
    said = folder / SAID
    before = size(said)
    async with child("agent0.cli.experiments.worker_ablation_run", str(folder), said=said) as process:
        hearing = asyncio.create_task(_hear(work, cell, process))
        try:
            code = await process.wait()
            await asyncio.wait([hearing], timeout=GRACE_S)
        finally:
            hearing.cancel()
    if not code:
        return ""
    await _let_go(folder)
    return last_words(said, before, code)


async def _hear(work: _Work, cell: Cell, process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None  # noqa: S101 - a pipe
    async for told in process.stdout:
        text, left = heard(told)
        if left is not None:
            work.ends[cell.name] = monotonic() + left
        if text:
            work.tell(f"{cell.name}  {text}  ({work.stand()})")


async def _let_go(folder: Path) -> None:
    """A process that was killed left its log's server behind."""
    from infra.log.nats_server import Server

    held = Plan.read(folder).held(folder)
    server = Server(held.nats, held.home / "nats")
    if not server.pid:
        return
    with contextlib.suppress(Agent0Error):
        await server.start()
        await server.stop()


def _found(work: _Work, plans: Mapping[str, RunConfig], chances: Mapping[str, Chance]) -> dict[str, Any]:
    """Everything there is to tell, from what finished cells wrote down."""
    grid, asked = work.asked.grid, work.asked
    outcomes = [work.done[cell.name] for cell in work.cells if cell.name in work.done]
    outcomes.sort(key=lambda one: list(plans).index(one.arm))
    measures = [name for name in grid.measures if any(row[name] is not None for row in seen(outcomes, [name]))]
    arms = with_models(chosen(grid, asked.only), asked.models)
    return {
        "grid": asked.name,
        "experiment": grid.name,
        "question": grid.question,
        "notes": list(grid.notes),
        "profile": asked.profile,
        "seeds": list(asked.seeds),
        "given": dict(asked.given),
        "effort": stated(plans),
        "models": list(asked.models),
        "about": {arm.name: arm.about for arm in arms},
        "settings": {arm.name: dict(arm.settings) for arm in arms},
        "folder": str(work.folder),
        "complete": len(outcomes) == len(work.cells),
        "failed": [{"cell": name, "why": why} for name, why in work.failed.items()],
        "measures": measures,
        "arms": told_arms(outcomes, measures, grid.controls),
        "against": against(outcomes, measures, grid.controls),
        "curves": curves(outcomes),
        "cost": cost(outcomes),
        "cells": seen(outcomes, measures),
        **({"skill": skill(outcomes, grid.sets, chances)} if grid.sets else {}),
    }
