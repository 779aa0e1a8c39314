"""Part of the rim: an environment behind OpenEnv's wire as a source of tasks. Its folder has the first observation of
each seed; answers are judged where it is served."""

import os
import re
import shutil
from pathlib import Path

from agent0.assembly.environments.added import TriedTask, free_folder
from agent0.assembly.mining.mined_folder import SOLUTIONS, TASKS
from agent0.errors import ConfigError, DependencyError
from agent0.evaluation.benchmarks.rows.question_rows import LONGEST
from agent0.events.values import Episode
from agent0.infra.web.openenv import ObservationData, OpenEnvServers, OpenEnvSession, base_url
from agent0.rollout.teacher import normal
from agent0.settings import Settings
from agent0.verification.repositories.mined_task import EpisodeTask


async def add_openenv(
    settings: Settings, url: str, name: str, count: int, question: str, servers: OpenEnvServers | None = None
) -> tuple[Path, list[TriedTask]]:
    """Add the episodes of the seeds below ``count`` at ``url`` as the environment ``name``; empty: as the server calls
    itself. ``question`` is the field of an observation that asks. A seed is a task where it asks the same twice, and
    what no earlier one asks. Returns where they are and all that were tried; nothing is kept where none is a task.

    Raises:
        ConfigError: address or name is none, or its actions are more than one text.
        OperationError: there is an environment of this name.
        DependencyError: it is away, or the disk cannot be written.
        EnvironmentFaultError: what it answers is no frame of the wire.
    """
    url, servers = base_url(url), servers or OpenEnvServers()
    about = await servers.metadata(url)
    path = free_folder(settings, name or re.sub("[^a-z0-9_-]+", "-", about.name.lower()).strip("-_")[:63])
    action = await servers.action(url)
    tasks, tried = dict[str, EpisodeTask](), list[TriedTask]()
    async with servers.session(url) as session:
        for seed in range(count):
            asked, why = await _asked(session, seed, question)
            why = why or ("it asks what an earlier one asks" if normal(asked) in tasks else "")
            tried.append(TriedTask(f"seed-{seed:05}", why))
            if not why:
                episode = Episode(url=url, seed=seed, question=question, action=action)
                tasks[normal(asked)] = EpisodeTask(
                    id=tried[-1].name,
                    environment=about.name,
                    version=about.version or "",
                    statement=asked,
                    episode=episode,
                )
    if tasks:
        _keep(path, list(tasks.values()))
    return path, tried


async def _asked(session: OpenEnvSession, seed: int, field: str) -> tuple[str, str]:
    """What the episode of ``seed`` asks, or why it is no task."""
    first, second = [_text(await session.reset(seed), field) for _ in range(2)]
    if first != second:
        return "", "it does not ask the same again"
    if not normal(first) or "\0" in first or len(first) > LONGEST:
        return "", f"its question is empty, has more than {LONGEST:,} characters, or a NUL"
    return first, ""


def _text(begun: ObservationData, field: str) -> str:
    text = begun.observation.get(field)
    if not isinstance(text, str):
        fields = ", ".join(begun.observation)[:200] or "nothing"
        raise ConfigError(f"An observation has no text {field!r}.", f"It has: {fields}.", "Name another: --question")
    return text


def _keep(path: Path, tasks: list[EpisodeTask]) -> None:
    """Write the folder, whole or not at all."""
    adding = path.with_name(f".{path.name}.adding")
    try:
        shutil.rmtree(adding, ignore_errors=True)
        for folder in (TASKS, SOLUTIONS):
            (adding / folder).mkdir(mode=0o700, parents=True)
        for task in tasks:
            (adding / TASKS / f"{task.id}.json").write_text(task.model_dump_json(), encoding="utf-8")
        os.rename(adding, path)  # noqa: PTH104 (never over a folder that somebody made meanwhile)
    except OSError as error:
        raise DependencyError(f"The folder {path}", f"{error.strerror}.", "Free some space.") from error
    finally:
        shutil.rmtree(adding, ignore_errors=True)
