"""The artifact store that settings name."""

from importlib.util import find_spec
from pathlib import Path

from agent0.errors import ConfigError, RequirementsError
from agent0.infra.log.artifacts.chunks import ArtifactChunks
from agent0.infra.log.artifacts.shared import SharedArtifacts, SharedStore
from agent0.infra.log.connection import connect
from agent0.infra.log.nats_server import open_server
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.settings import Settings

_stores: dict[tuple[Path, str, str], SharedArtifacts] = {}


def artifact_store(settings: Settings) -> FileArtifacts:
    """Open the store of artifacts of ``settings``: its data folder, and where ``artifacts.store`` names one, the store
    that all hosts share behind it. A process has one of each.

    Raises:
        ConfigError: the log's servers are to hold artifacts, and its server is this host's own.
        RequirementsError: the package for buckets is missing.
    """
    if settings.artifacts.store == "folder":
        return FileArtifacts(settings.home)
    if settings.artifacts.store == "nats" and not settings.nats.url:
        why = "The embedded server is this host's alone."
        raise ConfigError(
            "artifacts.store is nats, and nats.url is empty.", why, "Set AGENT0_NATS_URL, or leave it out."
        )
    if settings.artifacts.store != "nats" and find_spec("obstore") is None:
        raise RequirementsError("obstore is not installed.", fix='Install it: pip install "agent0-train[cluster]"')
    key = (settings.home.resolve(), settings.artifacts.store, settings.nats.url)
    if key not in _stores:
        _stores[key] = SharedArtifacts(settings.home, lambda: _connected(settings))
    return _stores[key]


async def _connected(settings: Settings) -> SharedStore:
    if settings.artifacts.store != "nats":
        from agent0.infra.log.artifacts.objects import ArtifactObjects  # noqa: PLC0415 - of an extra

        return ArtifactObjects(settings.artifacts.store)
    server = await open_server(settings.home, settings.nats)
    link = await connect(server, "app", "agent0 artifacts")
    return ArtifactChunks(link, server)
