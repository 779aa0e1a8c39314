"""Part of the rim: base models of an ablation study, a built-in model trained from scratch for each seed, each in a
process of its own. A base is there whole or not at all, and is trained once."""

import asyncio
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from agent0.assembly.ablations.ablation_run import decode_progress, encode_progress
from agent0.assembly.runtime.child_process import child, last_words, size
from agent0.errors import ConfigError, OperationError
from agent0.experiments.ablation_runs import AblationRun
from agent0.infra.log.server_folder import write
from agent0.infra.models.transformers import PACKAGED

PROVENANCE = "provenance.json"
MODULE = "agent0.cli.experiments.worker_base"
EVERY = 20
"""Training steps between two lines of progress."""
Report = Callable[[str], None]


async def make_bases(folder: Path, course: str, seeds: Sequence[int], jobs: int, report: Report) -> dict[int, Path]:
    """Train the base of ``course`` for each seed below ``folder``, or take the packaged one where that is the same.
    At most ``jobs`` are trained at once.

    Raises:
        ConfigError: no such course.
        OperationError: one could not be made, or the one that is there was taught otherwise.
    """
    expected = _mix(course)
    limit = asyncio.Semaphore(jobs)

    async def trained_base(seed: int) -> Path:
        async with limit:
            return await _base(folder, course, seed, expected, report)

    async with asyncio.TaskGroup() as group:
        tasks = {seed: group.create_task(trained_base(seed)) for seed in seeds}
    return {seed: task.result() for seed, task in tasks.items()}


def _mix(course: str) -> dict[str, object]:
    from agent0.infra.tiny.courses import MIXES  # noqa: PLC0415 - torch

    if course not in MIXES:
        raise ConfigError(f"There is no course {course[:80]!r}.", f"Known: {', '.join(MIXES)}.")
    return MIXES[course].plain()


async def _base(folder: Path, course: str, seed: int, mix: dict[str, object], report: Report) -> Path:
    if course in PACKAGED and _same(PACKAGED[course], seed, mix):
        return PACKAGED[course]
    out = folder / f"base-{seed}"
    if out.exists():
        if _same(out, seed, mix):
            return out
        why = f"The model in {out} was trained otherwise."
        raise OperationError(f"The base of seed {seed} is another one.", why, "Choose another --name.")
    await _teach(out, seed, mix, report)
    return out


def _same(base: Path, seed: int, mix: dict[str, object]) -> bool:
    recorded = provenance(base)
    return (recorded.get("seed"), recorded.get("mix")) == (seed, mix)


def provenance(base: Path) -> dict[str, object]:
    """Read how a base model was made from its folder; empty where it cannot be read."""
    try:
        record: dict[str, object] = json.loads((base / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record


async def _teach(out: Path, seed: int, mix: dict[str, object], report: Report) -> None:
    part, plan, output_file = (out.with_name(out.name + end) for end in (".part", ".mix.json", ".said.txt"))
    shutil.rmtree(part, ignore_errors=True)
    write(plan, json.dumps(mix))
    before = size(output_file)
    report(f"{out.name} is trained from scratch.")
    async with child(MODULE, str(part), str(seed), str(plan), output=output_file) as process:
        assert process.stdout is not None  # noqa: S101 - a pipe
        async for line in process.stdout:
            if text := decode_progress(line)[0]:
                report(f"{out.name}  {text}")
        code = await process.wait()
    if code:
        fix = "The same command tries again."
        raise OperationError(f"The base of seed {seed} was not made.", last_words(output_file, before, code), fix)
    part.rename(out)
    report(f"{out.name} is trained.")


def train_base(folder: Path, seed: int, mix: Path, output: IO[str]) -> None:
    """Train a base model from scratch into ``folder``, in a process of its own: progress goes to ``output`` line by
    line, and the process exits where standard input ends, since its parent has died. ``mix`` is the file of the mix."""
    from agent0.infra.tiny.build import build  # noqa: PLC0415 - torch
    from agent0.infra.tiny.courses import read_mix  # noqa: PLC0415 - torch

    threading.Thread(target=_exit_with_parent, daemon=True).start()
    began = time.monotonic()

    def report(done: int, total: int, _loss: float) -> None:
        if done % EVERY == 0:
            left = (time.monotonic() - began) / done * (total - done)
            output.write(f"{encode_progress(f'step {done} of {total}, about {left:.0f} s left', left)}\n")
            output.flush()

    build(folder, seed=seed, mix=read_mix(mix), progress=report)


def _exit_with_parent() -> None:
    while os.read(0, 1024):  # not sys.stdin, whose lock would be held when this process ends by itself
        pass
    os._exit(1)


def with_base(ablation: AblationRun, course: str, bases: dict[int, Path]) -> AblationRun:
    """Return the ablation run with the base model of its seed, where its student is the packaged model of
    ``course``."""
    if not _packaged(ablation, course):
        return ablation
    student = ablation.config.student
    student_of_seed = student.model_copy(update={"provider": "transformers", "model": str(bases[ablation.seed])})
    return replace(ablation, config=ablation.config.model_copy(update={"student": student_of_seed}))


def seeds_without_base(ablations: Sequence[AblationRun], course: str) -> list[int]:
    """List the seeds of the runs whose student is the packaged model of ``course``: each needs a base of its own."""
    return list(dict.fromkeys(ablation.seed for ablation in ablations if _packaged(ablation, course)))


def _packaged(ablation: AblationRun, course: str) -> bool:
    """Never so of a study without a course, whatever its student is."""
    return bool(course) and (ablation.config.student.provider, ablation.config.student.model) == ("tiny", course)
