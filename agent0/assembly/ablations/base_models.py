"""Part of the rim: bases of a grid, a built-in model taught from nothing for each seed, each in a process of its own.
One is there whole or not at all, and is not taught twice."""

import asyncio
import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from agent0.assembly.ablations.ablation_run import heard
from agent0.assembly.runtime.child_process import child, last_words, size
from agent0.errors import ConfigError, OperationError
from agent0.experiments.ablation_cells import Cell

PROVENANCE = "provenance.json"
MODULE = "agent0.cli.experiments.worker_base"
Tell = Callable[[str], None]
_facts = re.compile(r"\*\*What (it was taught|was left out):\*\* (.+?)(?:\n\n|\Z)", re.DOTALL)


async def make_bases(folder: Path, course: str, seeds: Sequence[int], jobs: int, tell: Tell) -> dict[int, Path]:
    """The base of ``course`` for each seed, below ``folder``, or the packaged one where that is the same. At most
    ``jobs`` are taught at once.

    Raises:
        ConfigError: no such course.
        OperationError: one could not be made, or the one that is there was taught otherwise.
    """
    wanted = _mix(course)
    limit = asyncio.Semaphore(jobs)

    async def one(seed: int) -> Path:
        async with limit:
            return await _base(folder, course, seed, wanted, tell)

    async with asyncio.TaskGroup() as group:
        tasks = {seed: group.create_task(one(seed)) for seed in seeds}
    return {seed: task.result() for seed, task in tasks.items()}


def _mix(course: str) -> dict[str, Any]:
    from infra.tiny.build import MIXES

    if course not in MIXES:
        raise ConfigError(f"There is no course {course[:80]!r}.", f"Known: {', '.join(MIXES)}.")
    plain: dict[str, Any] = json.loads(json.dumps(asdict(MIXES[course])))
    return plain


async def _base(folder: Path, course: str, seed: int, mix: dict[str, Any], tell: Tell) -> Path:
    from infra.models.tiny import packaged

    if _same(packaged(course), seed, mix):
        return packaged(course)
    out = folder / f"base-{seed}"
    if out.exists():
        if _same(out, seed, mix):
            return out
        why = f"What is in {out} was taught otherwise."
        raise OperationError(f"The base of seed {seed} is another one.", why, "Choose another --name.")
    await _teach(out, seed, mix, tell)
    return out


def _same(base: Path, seed: int, mix: dict[str, Any]) -> bool:
    from infra.tiny.build import split_rule

    told = provenance(base)
    known = (told.get("seed"), told.get("mix"), told.get("split_rule", 1))
    return known == (seed, mix, split_rule(mix["course"]))


def provenance(base: Path) -> dict[str, Any]:
    """What a base says of how it was made; nothing where it cannot be read."""
    try:
        held: dict[str, Any] = json.loads((base / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return held


async def _teach(out: Path, seed: int, mix: dict[str, Any], tell: Tell) -> None:
    from infra.log.server_folder import write

    part, plan, said = (out.with_name(out.name + end) for end in (".part", ".mix.json", ".said.txt"))
    shutil.rmtree(part, ignore_errors=True)
    write(plan, json.dumps(mix))
    before = size(said)
    tell(f"{out.name} is taught from nothing.")
    async with child(MODULE, str(part), str(seed), str(plan), said=said) as process:
        assert process.stdout is not None  # noqa: S101 - a pipe
        async for told in process.stdout:
            if text := heard(told)[0]:
                tell(f"{out.name}  {text}")
        code = await process.wait()
    if code:
        fix = "The same command tries again."
        raise OperationError(f"The base of seed {seed} was not made.", last_words(said, before, code), fix)
    part.rename(out)
    tell(f"{out.name} is there.")


def with_base(cell: Cell, course: str, bases: dict[int, Path]) -> Cell:
    """``cell`` with the base of its seed, where its student is the packaged model of ``course``."""
    if not _packaged(cell, course):
        return cell
    student = cell.config.student
    own = student.model_copy(update={"provider": "transformers", "model": str(bases[cell.seed])})
    return replace(cell, config=cell.config.model_copy(update={"student": own}))


def needed(cells: Sequence[Cell], course: str) -> list[int]:
    """Seeds of cells whose student is the packaged model of ``course``, which is to be a base of their own."""
    return list(dict.fromkeys(cell.seed for cell in cells if _packaged(cell, course)))


def _packaged(cell: Cell, course: str) -> bool:
    """Never so of a grid without a course, whatever its student is."""
    return bool(course) and (cell.config.student.provider, cell.config.student.model) == ("tiny", course)


def told_bases(course: str, bases: dict[int, Path]) -> dict[str, Any]:
    """Of what was taught: the course's own words, and how each base was made."""
    from infra.models.tiny import FOLDER

    card = FOLDER / f"{course}_card.md"
    facts = {name: " ".join(text.split()) for name, text in _facts.findall(card.read_text(encoding="utf-8"))}
    seen = ("sha256", "parameters", "steps", "seconds", "loss")
    rows = [
        {"seed": seed, "made": "packaged" if base.parent == FOLDER else "here"}
        | {name: told.get(name) for told in [provenance(base)] for name in seen}
        for seed, base in bases.items()
    ]
    return {
        "course": course,
        "taught": facts.get("it was taught", ""),
        "left_out": facts.get("was left out", ""),
        "bases": rows,
    }
