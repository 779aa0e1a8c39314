"""Environments of others, each kind reached its own way."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from agent0.events.episodes import Episode
from agent0.infra.environments.programs import Programs
from agent0.infra.environments.tau2 import FOLDER, TAU2, Tau2
from agent0.infra.web.openenv import OpenEnvServers
from agent0.ports.environments import OpenEpisode


class EnvironmentsByKind:
    """The ``Environments`` port. ``folder``: where environments are installed."""

    def __init__(self, folder: Path) -> None:
        self._servers, self._programs, self._tau2 = OpenEnvServers(), Programs(folder), Tau2(folder / FOLDER)

    def opened(self, episode: Episode) -> AbstractAsyncContextManager[OpenEpisode]:
        """As ``Environments.opened``."""
        if episode.kind == TAU2:
            return self._tau2.opened(episode)
        return self._servers.opened(episode) if "://" in episode.url else self._programs.opened(episode)

    async def close(self) -> None:
        """End every process."""
        await self._programs.close()
        await self._tau2.close()
