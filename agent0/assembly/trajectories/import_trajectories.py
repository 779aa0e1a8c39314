"""Part of the rim: a file of another framework's attempts, or what another program had a student of ours write, becomes
a run of the log, all of it or nothing."""

import json
from dataclasses import dataclass
from pathlib import Path

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.replay.stored_experiments import append_new
from agent0.assembly.runtime.read_models import sound_log
from agent0.assembly.runtime.stamping import code_rev, utc_now
from agent0.errors import ConfigError, NotFoundError
from agent0.events.base import sha256
from agent0.events.runs import RunStarted
from agent0.events.submissions import RECORDING, TurnAnswered
from agent0.events.values import Artifact
from agent0.experiments.interchange import openenv
from agent0.experiments.interchange.foreign_run import ForeignFile, events_of
from agent0.experiments.interchange.formats import foreign_file
from agent0.experiments.interchange.recorded import RecordedTurn, traces
from agent0.infra.storage.datasets import load
from agent0.ports.storage import Artifacts, Dataset
from agent0.rollout.claim_check import redeem, redeem_turns
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
    return await _stored(settings, foreign_file(load(path), format))


async def import_recording(settings: Settings, name: str) -> TraceImport:
    """Write the conversations of the recording ``name``, as far as they are recorded, as a run; once there is more of
    them, it is another.

    Raises:
        NotFoundError: nothing is recorded under this name.
    """
    turns, artifacts = list[RecordedTurn](), artifact_store(settings)
    async with sound_log(settings) as log:
        async for stored in log.read(f"{RECORDING}{name}", [TurnAnswered.__name__]):
            event = stored.event
            assert isinstance(event, TurnAnswered)  # noqa: S101 - only these are read
            prompt = redeem_turns(event.turns, event.turns_artifact, artifacts)
            turns.append(RecordedTurn(event, prompt, redeem(event.trajectory, event.trajectory_artifact, artifacts)))
    if not turns:
        fix = f"Let a program ask at /v1/recordings/{name} first."
        raise NotFoundError(f"Nothing is recorded under {name!r}.", "", fix)
    text = "".join(f"{json.dumps(trace)}\n" for trace in traces(turns))
    return await _stored(settings, foreign_file(Dataset(f"{RECORDING}{name}", text, sha256(text)), openenv.NAME))


def _require_format(file: ForeignFile, start: RunStarted) -> None:
    """Require that ``file`` is read as when its run began: half of it may be there.

    Raises:
        ConfigError: it is read as another format.
    """
    before = start.imported.format if start.imported else ""
    if before != file.format:
        why = f"Run {file.run} has it so, and a file is one run."
        raise ConfigError(f"{file.name} was imported as {before}.", why, f"Say: --format {before}")


async def _stored(settings: Settings, file: ForeignFile) -> TraceImport:
    waiting, artifacts = _WaitingArtifacts(), artifact_store(settings)
    events = events_of(file, waiting, utc_now(), code_rev())
    for artifact, content in waiting.contents.items():
        artifacts.put(content, artifact.media)
    async with open_log(settings, make=True) as log:
        stored_ids = set[str]()
        async for stored in log.read(file.run):
            stored_ids.add(stored.id)
            if isinstance(stored.event, RunStarted):
                _require_format(file, stored.event)
        await append_new(log, events, stored_ids)
    tasks = sum(event.type == "TaskAccepted" for event in events)
    return TraceImport(file, tasks, len(events) - len(stored_ids))
