"""What the routes share: the settings, the tables as they are or as they were, and what may be written."""

import asyncio
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Annotated

from fastapi import Depends, Request

from agent0.api.admission.keys import Key, KeyFile
from agent0.api.admission.rates import WrongKeys
from agent0.api.deep import DeepReadings
from agent0.api.past import PastTables
from agent0.assembly.batches.served_batches import ServedBatches
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.read_models import reading
from agent0.config.loading import environment_settings
from agent0.errors import OperationError
from agent0.infra.engine.worker_process import environment_of
from agent0.infra.log.event_log import Log
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.ports.models import Models
from agent0.projections import position
from agent0.projections.base import Row
from agent0.projections.runs import resolve
from agent0.report.charts.run_charts import LineCache
from agent0.settings import Settings

SHOWN = 500
"""Characters of what a rebuild that failed said."""


class Rebuilding:
    """The rebuild that one server began last: ``state`` is none, under way, done or failed (``why``)."""

    def __init__(self) -> None:
        self.said: Row = {"state": "none", "seq": None, "why": ""}
        self._work: asyncio.Task[None] | None = None

    def begin(self, settings: Settings) -> Row:
        """Begin to rebuild the tables of ``settings``.

        Raises:
            OperationError: they are being rebuilt.
        """
        if self._work and not self._work.done():
            raise OperationError("The tables are being rebuilt.", fix="Wait for it: GET /v1/status says how it stands.")
        self.said = {"state": "under way", "seq": None, "why": ""}
        self._work = asyncio.create_task(self._run(settings))
        return self.said

    async def close(self) -> None:
        """End what is under way; the live tables stay as they are."""
        if self._work:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)

    async def _run(self, settings: Settings) -> None:
        command = (sys.executable, "-m", "agent0", "projections", "rebuild", "--json")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, env=environment_for(settings), stdout=pipe, stderr=pipe
        )
        try:
            out, wrong = await process.communicate()
        except asyncio.CancelledError:
            process.terminate()
            await process.wait()
            raise
        if process.returncode == 0:
            self.said = {"state": "done", "seq": json.loads(out)["seq"], "why": ""}
        else:
            self.said = {"state": "failed", "seq": None, "why": wrong.decode(errors="replace").strip()[-SHOWN:]}


def environment_for(settings: Settings) -> dict[str, str]:
    """What a command needs to do as this process does: the settings of its environment, and the data folder and server
    of ``settings``. No secret but that of the log."""
    values = {name: getattr(settings.nats, name) for name in settings.nats.model_fields_set}
    plain = {name: value.get_secret_value() if name == "password" else value for name, value in values.items()}
    nats = {f"AGENT0_NATS__{name.upper()}": str(value) for name, value in plain.items() if value is not None}
    return {**environment_settings(), **environment_of(1), "AGENT0_HOME": str(settings.home), **nats}


LOOK_S = 0.2
"""How often streams look into the tables, which lag by as much."""


@dataclass
class ApiContext:
    """One server's data folder. ``log`` is None where nothing may be written; ``models`` answers chats, where it is
    there; ``handlers``: whether they run in this process. ``ending`` is set when the server ends, so that streams end
    with it."""

    settings: Settings
    keys: KeyFile
    past: PastTables
    log: Log | None = None
    models: Models | None = None
    loopback: bool = True
    handlers: bool = False
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    rebuilding: Rebuilding = field(default_factory=Rebuilding)
    batches: ServedBatches = field(default_factory=ServedBatches)
    behind: int = 0
    """Events of the log that the tables lack for longer than a moment."""
    _end: int = 0
    _looked: float = 0.0

    def __post_init__(self) -> None:
        self.deep = DeepReadings(self.tables)
        self.lines = LineCache()
        self.wrong_keys = WrongKeys(self.settings.api.changes_per_minute)

    @property
    def artifacts(self) -> FileArtifacts:
        """The store of what is too long for an event."""
        return artifact_store(self.settings)

    @contextmanager
    def tables(self, at: int = 0) -> Iterator[sqlite3.Connection]:
        """A read-only connection to the tables; with ``at``, to the tables as they were behind that event.

        Raises:
            NotFoundError: there are none yet, or no event ``at``.
        """
        if at:
            with self.past.reading(at) as db:
                yield db
            return
        with reading(self.settings) as db:
            yield db

    def resolve(self, run: str) -> str:
        """The id of ``run`` (``agent0.projections.runs.resolve``)."""
        with self.tables() as db:
            return resolve(db, run)

    async def end(self) -> int:
        """How far the tables have come, looked up once for all streams that ask at the same time."""
        if monotonic() >= self._looked + LOOK_S:
            self._looked = monotonic()
            self._end = await asyncio.to_thread(self._position)
        return self._end

    def _position(self) -> int:
        with self.tables() as db:
            return position(db).seq

    def require_models(self) -> Models:
        """What opens models.

        Raises:
            OperationError: the server was made without.
        """
        if self.models is None:
            raise OperationError("This server opens no models.", fix="Start it by `agent0 up` or `agent0 view`.")
        return self.models

    def require_log(self) -> Log:
        """The log, to append to.

        Raises:
            OperationError: the server only reads.
        """
        if self.log is None:
            why = "It was started by `agent0 view`."
            raise OperationError("This server only reads.", why, "Start `agent0 up` on a data folder to write.")
        return self.log


def context_of(request: Request) -> ApiContext:
    """The context of the application that ``request`` came to."""
    context: ApiContext = request.app.state.context
    return context


Context = Annotated[ApiContext, Depends(context_of)]


def key_of(request: Request) -> Key | None:
    """The key of ``request``; None where the server has none and asks for none."""
    key: Key | None = request.scope.get("agent0.key")
    return key
