"""Part of the rim: episodes of an environment as a folder of tasks, whichever way it is reached. A seed is a task where
it asks the same twice, and what no earlier one asks."""

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from agent0.assembly.environments.added import TriedTask
from agent0.assembly.mining.mined_folder import SOLUTIONS, TASKS
from agent0.errors import DependencyError
from agent0.evaluation.benchmarks.rows.question_rows import LONGEST
from agent0.events.episodes import Episode
from agent0.ports.environments import OpenEpisode, ResetOptions
from agent0.rollout.teacher import normal
from agent0.tools.episode import tools_digest
from agent0.verification.repositories.mined_task import EpisodeTask

Opened = Callable[[Episode], AbstractAsyncContextManager[OpenEpisode]]
"""Begins an episode."""


async def add_episodes(
    path: Path, count: int, opened: Opened, like: EpisodeTask, resets: ResetOptions, beside: Path | None = None
) -> list[TriedTask]:
    """Write the seeds below ``count`` that are tasks ``like`` this one, ``resets`` their options, to ``path``; returns
    all that were tried. Nothing is kept where none is a task. What the folder ``beside`` holds is moved there, too.

    Raises:
        DependencyError: the environment is away, or the disk cannot be written.
        EnvironmentFaultError: what it answers is no begin of an episode.
    """
    tasks, tried = dict[str, EpisodeTask](), list[TriedTask]()
    for seed in range(count):
        options = {name: values[seed % len(values)] for name, values in resets.items()}
        episode = like.episode.model_copy(update={"seed": seed, "options": options})
        episode, statement, why = await _first_statement(opened, episode)
        why = why or ("it asks what an earlier one asks" if normal(statement) in tasks else "")
        tried.append(TriedTask(f"seed-{seed:05}", why))
        if not why:
            changes = {"id": tried[-1].name, "statement": statement, "episode": episode}
            tasks[normal(statement)] = like.model_copy(update=changes)
    if tasks:
        keep(path, list(tasks.values()), beside)
    return tried


async def _first_statement(opened: Opened, episode: Episode) -> tuple[Episode, str, str]:
    """The episode with the digest of its tools, what it asks, and why it is no task."""
    begins = []
    for _ in range(2):
        async with opened(episode) as session:
            begins.append((session.question, tools_digest(session.tools)))
    (statement, digest), second = begins
    episode = episode.model_copy(update={"tools": digest})
    if (statement, digest) != second:
        return episode, "", "it does not ask the same again"
    if not normal(statement) or "\0" in statement or len(statement) > LONGEST:
        return episode, "", f"its question is empty, has more than {LONGEST:,} characters, or a NUL"
    return episode, statement, ""


def keep(path: Path, tasks: list[EpisodeTask], beside: Path | None = None) -> None:
    """Write ``tasks`` to the folder ``path``, whole or not at all, with what the folder ``beside`` holds.

    Raises:
        DependencyError: the disk cannot be written.
    """
    adding = path.with_name(f".{path.name}.adding")
    try:
        shutil.rmtree(adding, ignore_errors=True)
        for folder in (TASKS, SOLUTIONS):
            (adding / folder).mkdir(mode=0o700, parents=True)
        for task in tasks:
            (adding / TASKS / f"{task.id}.json").write_text(task.model_dump_json(), encoding="utf-8")
        for part in beside.iterdir() if beside else ():
            part.rename(adding / part.name)
        os.rename(adding, path)  # noqa: PTH104 (never over a folder that somebody made meanwhile)
    except OSError as error:
        raise DependencyError(f"The folder {path}", f"{error.strerror}.", "Free some space.") from error
    finally:
        shutil.rmtree(adding, ignore_errors=True)
