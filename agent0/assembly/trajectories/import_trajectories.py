"""Part of the rim: a file of another framework's attempts becomes a run of the log, all of it or nothing."""

from dataclasses import dataclass
from pathlib import Path

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.replay.stored_experiments import append_new
from agent0.assembly.runtime.stamping import code_rev, utc_now
from agent0.events.base import sha256
from agent0.events.values import Artifact
from agent0.experiments.interchange.foreign_run import ForeignFile, events_of
from agent0.experiments.interchange.formats import foreign_file
from agent0.infra.storage.datasets import load
from agent0.ports.storage import Artifacts
from agent0.settings import Settings


class _WaitingArtifacts(Artifacts):
    """Keeps what is to be stored until every row of a file has been read."""

    def __init__(self) -> None:
        self.contents: dict[Artifact, bytes] = {}

    def put(self, data: bytes, media: str = "application/octet-stream") -> Artifact:
        """As ``Artifacts.put``, but nothing is stored yet."""
        artifact = Artifact(sha256=sha256(data), size=len(data), media=media)
        self.contents[artifact] = data
        return artifact

    def get(self, artifact: Artifact) -> bytes:
        """As ``Artifacts.get``, of what waits."""
        return self.contents[artifact]

    def discard(self, artifact: Artifact) -> None:
        """As ``Artifacts.discard``, of what waits."""
        self.contents.pop(artifact, None)


@dataclass(frozen=True)
class TraceImport:
    """What an import came to. ``stored``: events that were written; 0 where the file was imported before."""

    file: ForeignFile
    tasks: int
    stored: int


async def import_trajectories(settings: Settings, path: Path, format: str) -> TraceImport:
    """Read ``path`` whole, then write it as a run. Nothing is written where a row is at fault; killed while it writes,
    the same command goes on.

    Raises:
        ConfigError: the file cannot be read, or is of no known format. RowError: a row of it is none.
    """
    file = foreign_file(load(path), format)
    waiting, artifacts = _WaitingArtifacts(), artifact_store(settings)
    events = events_of(file, waiting, utc_now(), code_rev())
    for artifact, content in waiting.contents.items():
        artifacts.put(content, artifact.media)
    async with open_log(settings, make=True) as log:
        stored_ids = {event.id async for event in log.read(file.run)}
        await append_new(log, events, stored_ids)
    tasks = sum(event.type == "TaskAccepted" for event in events)
    return TraceImport(file, tasks, len(events) - len(stored_ids))
