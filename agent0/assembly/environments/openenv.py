"""Part of the rim: an environment behind OpenEnv's wire as a source of tasks. Its folder has the first observation of
each seed; answers are judged where it is served."""

import re
from pathlib import Path

from agent0.assembly.environments.added import TriedTask, free_folder
from agent0.assembly.environments.episodes import add_episodes
from agent0.events.episodes import Episode
from agent0.infra.web.openenv import OpenEnvServers, base_url
from agent0.ports.environments import ResetOptions
from agent0.settings import Settings
from agent0.verification.repositories.mined_task import EpisodeTask


async def add_openenv(
    settings: Settings,
    url: str,
    name: str,
    count: int,
    question: str,
    servers: OpenEnvServers | None = None,
    *,
    steps: bool = False,
    right: float | None = None,
    resets: ResetOptions | None = None,
) -> tuple[Path, list[TriedTask]]:
    """Add the episodes of the seeds below ``count`` at ``url`` as the environment ``name``; empty: as the server calls
    itself. ``question`` is the field of an observation that asks, ``steps``: an episode goes over several, ``right``:
    the least reward of a right episode, ``resets``: the options of each reset. Returns its folder and all tasks
    that were tried; nothing is stored where none is accepted.

    Raises:
        ConfigError: address or name is none, or its actions are more than one text, and not ``steps``.
        OperationError: there is an environment of this name.
        DependencyError: it is away, or the disk cannot be written.
        EnvironmentFaultError: what it answers is no frame of the wire.
    """
    url, servers = base_url(url), servers or OpenEnvServers()
    about = await servers.metadata(url)
    path = free_folder(settings, name or re.sub("[^a-z0-9_-]+", "-", about.name.lower()).strip("-_")[:63])
    action = "" if steps else await servers.action(url)
    tools = "steps" if steps else ""
    episode = Episode(url=url, seed=0, question=question, action=action, tools=tools, right=right)
    like = EpisodeTask(id="", environment=about.name, version=about.version or "", statement="", episode=episode)
    return path, await add_episodes(path, count, servers.opened, like, resets or {})
