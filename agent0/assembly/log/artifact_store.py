"""The artifact store that settings name."""

from pathlib import Path

from agent0.errors import ConfigError
from agent0.infra.log.artifacts.chunks import ArtifactChunks
from agent0.infra.log.artifacts.shared import SharedArtifacts, SharedStore
from agent0.infra.log.connection import connect
from agent0.infra.log.nats_server import open_server
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.settings import Settings

_stores: dict[tuple[Path, str], SharedArtifacts] = {}


def artifact_store(settings: Settings) -> FileArtifacts:
    """Open the store of artifacts of ``settings``: its data folder, and where ``artifacts.store`` names one, the store
    that all hosts share behind it. A process has one of each.

    Raises:
        ConfigError: the log's servers are to hold artifacts, and its server is this host's own.
    """
    if settings.artifacts.store == "folder":
        return FileArtifacts(settings.home)
    if not settings.nats.url:
        why = "The embedded server is this host's alone."
        raise ConfigError(
            "artifacts.store is nats, and nats.url is empty.", why, "Set AGENT0_NATS_URL, or leave it out."
        )
    key = (settings.home.resolve(), settings.nats.url)
    if key not in _stores:
        _stores[key] = SharedArtifacts(settings.home, lambda: _connected(settings))
    return _stores[key]


async def _connected(settings: Settings) -> SharedStore:
    server = await open_server(settings.home, settings.nats)
    link = await connect(server, "app", "agent0 artifacts")
    return ArtifactChunks(link, server)
