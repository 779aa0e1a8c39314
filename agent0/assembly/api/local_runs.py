"""Part of the rim: runs of a data folder on this machine, executed by threads of this process."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from agent0.assembly.api.calls import Background
from agent0.assembly.api.transports import CHANGES, LOOK_S, OVER, Decision, StartOrder
from agent0.assembly.log.access import open_log
from agent0.assembly.log.carriers import carriers, known_here
from agent0.assembly.requests.decisions import decided
from agent0.assembly.requests.run_filters import require_status
from agent0.assembly.runtime.execution import FAILED, Observer, execute_run
from agent0.assembly.runtime.progress import Progress
from agent0.assembly.runtime.read_models import NothingError, catch_up, reading, require_reached
from agent0.assembly.tracking.measured import measured
from agent0.assembly.validate.question_ledger import question_ledger
from agent0.errors import NotFoundError, OperationError
from agent0.events.base import Recorded, decode
from agent0.events.runs import RunPaused
from agent0.infra.log.event_log import Log
from agent0.projections.base import Row
from agent0.projections.events import show_event, stored_events
from agent0.projections.runs import RunFilter, list_runs, resolve, show_run
from agent0.report.overview import overview
from agent0.settings import Settings

T = TypeVar("T")
CHUNK = 200
LEFT_S = 10.0
"""Seconds without a process that executes a running run until it counts as left: one that begins takes some."""
_executions: dict[tuple[Path, str], Background[Progress]] = {}
"""What this process executes or executed, by data folder and run."""


class Starter(Protocol):
    """What starts runs of a data folder and returns at once (``agent0.assembly.api.folder.Folder``)."""

    settings: Settings

    def begin(self, start: StartOrder) -> str:
        """Start a run; returns its id."""
        ...

    def begin_fork(self, run: str, at: int, settings: Mapping[str, object], name: str) -> str:
        """Start a run in the middle of another; returns its id."""
        ...

    def begin_again(self, run: str) -> None:
        """Go on with a run."""
        ...

    def refresh(self) -> None:
        """Catch the tables up with the log."""
        ...

    def require_writable(self, what: str) -> None:
        """Raises OperationError where the folder was opened to read."""
        ...


def execute(settings: Settings, run: str, begin: Recorded | None, observer: Observer, *, wait: bool) -> None:
    """Execute ``run`` in a thread to its end; return then, or, without ``wait``, once ``begin`` is stored.

    Raises:
        KeyboardInterrupt: Ctrl-C came; the run is paused. Agent0Error: as ``execute_run``.
    """
    announcing = _Announcing(observer)
    background = Background(lambda: execute_run(settings, run, begin, announcing))
    _executions[settings.home, run] = background
    try:
        background.start()
        while not wait and not background.ended.done():
            if announcing.begun.wait(LOOK_S / 4) and (begin is None or _is_stored(settings, begin)):
                return
        background.join()
    except KeyboardInterrupt:
        background.stop()
        raise


class _Announcing:
    """An observer that says when the run has begun: then it is followed."""

    def __init__(self, observer: Observer) -> None:
        self.say, self._observer, self.begun = observer.say, observer, threading.Event()

    async def follow(self, log: Log, run: str) -> Progress:
        """Have the observer follow the run."""
        self.begun.set()
        return await self._observer.follow(log, run)


def execution(settings: Settings, run: str) -> Background[Progress] | None:
    """What executes ``run`` in this process now, or did it last; None: nothing here."""
    return _executions.get((settings.home, run))


def _is_stored(settings: Settings, begin: Recorded) -> bool:
    try:
        with reading(settings) as db:
            return bool(show_event(db, begin.id))
    except NotFoundError:
        return False


async def _drained(executing: Background[Progress]) -> None:
    while not executing.ended.done():
        await asyncio.sleep(LOOK_S / 4)


def _raise_failure(executing: Background[Progress]) -> None:
    """Raise what an execution that has ended failed of; one that was stopped has not failed."""
    if isinstance(error := executing.ended.exception(), Exception):
        raise error


class LocalTransport:
    """Reads the tables of a data folder, writes its log, and starts threads that execute runs."""

    def __init__(self, folder: Starter) -> None:
        self._folder, self._settings = folder, folder.settings

    async def resolve(self, name: str) -> str:
        """As ``Transport.resolve``."""
        return await self._read(lambda db: resolve(db, name))

    async def runs(self, chosen: RunFilter, *, hidden: bool, forks: bool) -> list[str]:
        """As ``Transport.runs``."""
        require_status(chosen.status)

        def listed(db: sqlite3.Connection) -> list[str]:
            rows = list_runs(db, 1_000_000, hidden=hidden, chosen=chosen)
            return [str(row["run"]) for row in rows if row["parent"] or not forks]

        try:
            return await self._read(listed)
        except NothingError:
            return []

    async def overview(self, run: str) -> Row:
        """As ``Transport.overview``."""
        return await self._read(lambda db: overview(db, run, known_here(self._settings)))

    async def metrics(self, run: str) -> Sequence[Row]:
        """As ``Transport.metrics``."""
        return await self._read(lambda db: measured(db, run).all_rows())

    async def ledger(self, run: str) -> Sequence[Row]:
        """As ``Transport.ledger``."""
        return await self._read(lambda db: question_ledger(db, run).rows)

    async def events(
        self, run: str, types: str, task: str, after: int, *, follow: bool
    ) -> AsyncIterator[Sequence[Recorded]]:
        """As ``Transport.events``. Raises what an execution in this process failed of.

        Raises:
            NotFoundError: the log has no event ``after`` yet.
            OperationError: the run is running, and no process executes it.
        """
        carried = time.monotonic()
        await self._read(lambda db: require_reached(db, after))
        while True:
            last = after
            rows = await self._read(lambda db: stored_events(db, run, types, task, last, limit=CHUNK))  # noqa: B023
            if rows:
                after = int(rows[-1]["seq"])
                yield [decode(row["body"], row["seq"]) for row in rows]
            elif not follow:
                return
            else:
                carried = await self._look(run, carried)
                await asyncio.sleep(LOOK_S)

    async def start(self, start: StartOrder) -> str:
        """As ``Transport.start``."""
        return await asyncio.to_thread(self._folder.begin, start)

    async def fork(self, run: str, at: int, settings: Mapping[str, object], name: str) -> str:
        """As ``Transport.fork``."""
        return await asyncio.to_thread(self._folder.begin_fork, run, at, settings, name)

    async def decide(self, run: str, decision: Decision, reason: str) -> None:
        """As ``Transport.decide``; a resumed run that has no executor in this process gets one."""
        self._folder.require_writable(f"{decision} a run")
        executing = execution(self._settings, run)
        if decision == "resume" and (executing is None or not await self._goes_on(run, executing)):
            await asyncio.to_thread(self._folder.begin_again, run)
            return
        async with open_log(self._settings) as log:
            await catch_up(self._settings, log)
            row = await self._read(lambda db: show_run(db, run))
            await log.append([decided(self._settings, row, decision, reason)])
            await catch_up(self._settings, log)

    async def conclude(self, run: str, last: Recorded) -> None:
        """As ``Transport.conclude``."""
        executing = execution(self._settings, run)
        failed = isinstance(last.event, RunPaused) and last.event.reason == FAILED
        if executing is not None and (failed or CHANGES[last.type] in OVER):
            await _drained(executing)
            if failed:
                _raise_failure(executing)

    async def _goes_on(self, run: str, executing: Background[Progress]) -> bool:
        """Whether ``executing`` will take up what is resumed; one that is ending is waited for."""
        if await self._status(run) in OVER:
            await _drained(executing)
        return not executing.ended.done()

    async def _look(self, run: str, carried: float) -> float:
        """Look whether what is waited for can come; the moment at which somebody last executed the run."""
        executing, status = execution(self._settings, run), await self._status(run)
        if executing is not None and executing.ended.done() and status == "paused":
            _raise_failure(executing)
        processes = await asyncio.to_thread(carriers, self._settings)
        if processes is None:
            await asyncio.to_thread(self._folder.refresh)  # elsewhere, with tables of their own
        if processes is None or processes or (executing is not None and not executing.ended.done()):
            return time.monotonic()
        if time.monotonic() < carried + LEFT_S:
            return carried
        if status == "running":
            fix = f"run.resume(), or: agent0 run resume {run}"
            raise OperationError(f"Run {run} stands still.", "No process executes it.", fix)
        return carried

    async def _status(self, run: str) -> str:
        return await self._read(lambda db: str(show_run(db, run)["status"]))

    async def _read(self, query: "Callable[..., T]") -> T:
        def read() -> T:
            with reading(self._settings) as db:
                return query(db)

        return await asyncio.to_thread(read)
