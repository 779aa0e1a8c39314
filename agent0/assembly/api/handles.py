"""Part of the rim: a run as a handle: how it goes, what it measured, and what a person decides. The same for a run of a
data folder and for one of a server."""

import asyncio
import inspect
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from agent0.assembly.api.arguments import checked_methods
from agent0.assembly.api.calls import Background, iterate_sync, run_sync
from agent0.assembly.api.rows import Rows, html_table, text
from agent0.assembly.api.transports import CHANGES, ENDS, OVER, Questions, StartOrder, Transport, required_types
from agent0.assembly.tracking.measured import picked
from agent0.config.setting_entries import nearest
from agent0.errors import NotFoundError
from agent0.events.base import Recorded
from agent0.projections.base import Row
from agent0.projections.runs import RunFilter
from agent0.report.overview import rows_for_people
from agent0.state.run_state import first_student

Callback = Callable[[Recorded], object]
"""Takes an event of a run; a coroutine that it returns is awaited."""
_COLOURS = {"ink": "#222", "quiet": "#8a8a8a", "validation": "#0072b2", "tools": "#d55e00", "test": "#009e73"}
_COLOURS |= {"forced": "#cc79a7", "within": "#e69f00"}
DRAWN = "CheckpointEvaluated,RunPaused,RunResumed"
"""Events behind which a shown curve is drawn anew."""


@dataclass(frozen=True)
class RunProgress:
    """How far a run is. ``share`` of all tasks of ``iterations`` was asked for, from 0 to 1; ``iteration`` counts from
    0, None before the first; scores are shares of solved items, None where nothing was scored yet."""

    status: str
    iteration: int | None
    iterations: int
    share: float
    tasks: int
    accepted: int
    attempts: int
    tool_calls: int
    events: int
    seconds: float
    validation: float | None
    heldout_first: float | None
    heldout_last: float | None

    @classmethod
    def of(cls, row: Row) -> "RunProgress":
        """Take the numbers out of an overview ``row``."""
        scores = [point["validation"] for point in row["validation"] if point["validation"] is not None]
        counts = {name: int(row[name] or 0) for name in ("tasks", "accepted", "attempts", "tool_calls", "events")}
        share = 1.0 if row["status"] == "finished" else min(1.0, counts["tasks"] / max(1, row["tasks_asked"]))
        return cls(
            status=str(row["status"]),
            iteration=row["iteration"],
            iterations=int(row["iterations"]),
            share=share,
            seconds=float(row["wall_s"] or 0.0),
            validation=scores[-1] if scores else None,
            heldout_first=row["heldout_first"],
            heldout_last=row["heldout_last"],
            **counts,
        )


@checked_methods
class AsyncRun:
    """A handle of one run whose operations are coroutines; any number of handles stand beside each other."""

    def __init__(self, transport: Transport, id: str) -> None:
        self._transport, self.id = transport, id

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    async def status(self) -> str:
        """running, paused, failed, finished, cancelled or deleted.

        Raises:
            NotFoundError: the run is gone.
        """
        return CHANGES[(await self._last_change()).type]

    async def progress(self) -> RunProgress:
        """How far it is, in numbers."""
        return RunProgress.of(await self.overview())

    async def overview(self) -> Row:
        """What it came to, as `agent0 run show --json` prints it."""
        return await self._transport.overview(self.id)

    async def metrics(self, *columns: str) -> Rows:
        """What it measured, every series or ``columns`` alone: a row for each iteration done (``step`` 0: untrained),
        then one for each step of the optimiser (``training/…``), None where one has no value. ``.frame()``: pandas.

        Raises:
            NotFoundError: nothing of that name was measured.
        """
        rows = await self._transport.metrics(self.id)
        names = [name for name in rows[0] if name != "step"] if rows else []
        for column in columns:
            if column not in names:
                many = f"It has {len(names)}: metrics() without a name gives all." if names else "It has none yet."
                raise NotFoundError(f"{self.id} has no metric {column[:80]!r}.", nearest(column, names), many)
        return Rows(picked(rows, columns or names))

    async def ledger(self) -> Rows:
        """How often it ``asked`` each ``row`` of its file of questions, and how many ``attempts`` at it were ``right``.

        Raises:
            NotFoundError: it has no such file.
        """
        return Rows(await self._transport.ledger(self.id))

    async def events(
        self, type: str = "", task: str = "", after: int = 0, *, follow: bool = False
    ) -> AsyncIterator[Recorded]:
        """Its events in the order of the log, typed; of one ``type`` (several: by commas) or ``task`` where named,
        behind the sequence ``after``. ``follow``: also those to come, until the run is over.

        Raises:
            NotFoundError: there is no such type, or no event ``after`` yet.
        """
        async with aclosing(self.parts(type, task, after, follow=follow)) as parts:  # type: ignore[type-var]
            async for part in parts:
                for recorded in part:
                    yield recorded

    async def parts(
        self, type: str = "", task: str = "", after: int = 0, *, follow: bool = False
    ) -> AsyncIterator[Sequence[Recorded]]:
        """The same events, as many at once as there are."""
        follow = follow and CHANGES[(await self._last_change()).type] not in OVER
        chosen, only, count = required_types(type), "" if follow else task, 0
        types = ",".join((chosen, *ENDS)) if type and follow else chosen
        names = frozenset(chosen.split(","))
        async with aclosing(self._transport.events(self.id, types, only, after, follow=follow)) as parts:  # type: ignore[type-var]
            async for part in parts:
                shown = [r for r in part if (not type or r.type in names) and task in ("", r.task)]
                count += len(shown)
                yield shown
                if follow and any(r.type in ENDS for r in part) and await self.status() in OVER:
                    break
        if task and not count and not ((type or after) and await self._has(task)):
            raise NotFoundError(f"{self.id} has no task {task[:80]!r}.", fix="events() without a task gives all.")

    async def _has(self, task: str) -> bool:
        async with aclosing(self._transport.events(self.id, "", task, 0, follow=False)) as parts:  # type: ignore[type-var]
            async for part in parts:
                if part:
                    return True
        return False

    async def wait(self, timeout: float | None = None) -> str:
        """Wait until it is over or paused, or for ``timeout`` seconds; its status then.

        Raises:
            Agent0Error: it is executed by this process, and that failed. OperationError: no process executes it.
        """
        last = await self._last_change()
        try:
            async with asyncio.timeout(timeout) as limit:
                while CHANGES[last.type] == "running":
                    last = await self._change_behind(last.seq)
                await self._transport.conclude(self.id, last)
        except TimeoutError:
            if not limit.expired():
                raise
        return CHANGES[last.type]

    async def pause(self, reason: str = "") -> None:
        """Begin nothing new in it; what is in hand is finished and nothing is lost.

        Raises:
            OperationError: it is not running.
        """
        await self._transport.decide(self.id, "pause", reason)

    async def resume(self, *, wait: bool = True) -> Self:
        """Go on with it where it was paused or has failed; ``wait`` until it is over. A finished one stays as it is.

        Raises:
            OperationError: it was cancelled.
        """
        if await self.status() != "finished":
            await self._transport.decide(self.id, "resume", "")
        if wait:
            await self.wait()
        return self

    async def cancel(self, reason: str = "") -> None:
        """End it for good; its events stay.

        Raises:
            OperationError: it is over.
        """
        await self._transport.decide(self.id, "cancel", reason)

    async def fork(
        self, at: int = 0, settings: Mapping[str, object] = {}, *, name: str = "", wait: bool = True
    ) -> "AsyncRun":
        """Start a run that goes on from this one as of the event ``at`` (0: its end) under other ``settings``; ``wait``
        until it is over.

        Raises:
            NotFoundError: it has no such event. ConfigError: a setting that does not fit.
        """
        forked = AsyncRun(self._transport, await self._transport.fork(self.id, at, settings, name))
        if wait:
            await forked.wait()
        return forked

    async def on(self, callback: Callback, type: str = "", after: int = 0) -> None:
        """Call ``callback`` with each of its events (of a ``type``, behind ``after``), and with those to come, until it
        is over. A callback that fails is warned of and called no more; the run goes on."""
        async with aclosing(self.events(type, after=after, follow=True)) as events:  # type: ignore[type-var]
            async for recorded in events:
                try:
                    result = callback(recorded)
                    if inspect.isawaitable(result):
                        await result
                except Exception as error:
                    warnings.warn(f"A callback failed at event {recorded.seq} of {self.id}: {error!r}", stacklevel=2)
                    return

    async def _last_change(self) -> Recorded:
        """The event that decides its status; the first end counts."""
        changes: list[Recorded] = []
        async for part in self._transport.events(self.id, ",".join(CHANGES), "", 0, follow=False):
            changes += part
        if not changes:
            raise NotFoundError(f"There is no run {self.id!r}.", fix="`agent0 run list` shows them.")
        ends = [recorded for recorded in changes if CHANGES[recorded.type] in ("finished", "cancelled")]
        return ends[0] if ends and changes[-1].type != "RunDeleted" else changes[-1]

    async def _change_behind(self, seq: int) -> Recorded:
        changes = self._transport.events(self.id, ",".join(CHANGES), "", seq, follow=True)
        async with aclosing(changes) as parts:  # type: ignore[type-var]
            async for part in parts:
                if part:
                    return part[-1]
        raise AssertionError("a followed stream has no end")


@checked_methods
class AsyncRuns:
    """The runs of one place, a data folder or a server; its operations are coroutines."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def start(
        self,
        profile: str | None = None,
        settings: Mapping[str, object] = {},
        *,
        name: str = "",
        questions: Questions | None = None,
        heldout: Questions | None = None,
        documents: str | Path | None = None,
        adapter: str | Path | None = None,
        wait: bool = True,
    ) -> AsyncRun:
        """Start a run, and ``wait`` until it is over or return once it has begun; the arguments are those of
        ``Folder.start``, or of ``Server.start``."""
        order = StartOrder(profile, settings, name, questions, heldout, documents, adapter)
        run = AsyncRun(self._transport, await self._transport.start(order))
        if wait:
            await run.wait()
        return run

    async def run(self, name: str = "LAST") -> AsyncRun:
        """The run of this id; the newest for LAST.

        Raises:
            NotFoundError: there is none.
        """
        return AsyncRun(self._transport, await self._transport.resolve(name))

    async def runs(
        self,
        *,
        tag: str = "",
        profile: str | None = None,
        status: str = "",
        text: str = "",
        forks: bool = False,
        hidden: bool = False,
    ) -> list[AsyncRun]:
        """Runs, newest first: those with a ``tag``, of a ``profile``, of a ``status``, with ``text`` in id, name, tag
        or note, and ``forks`` alone, where asked for; ``hidden`` and deleted ones, too.

        Raises:
            ConfigError: no run can have such a status.
        """
        listed = await self._transport.runs(RunFilter(tag, profile or "", status, text), hidden=hidden, forks=forks)
        return [AsyncRun(self._transport, run) for run in listed]


@checked_methods
class RunHandle:
    """A handle of one run. Every operation waits for its answer; ``aio`` has the same ones as coroutines."""

    def __init__(self, aio: AsyncRun) -> None:
        self.aio = aio

    @property
    def id(self) -> str:
        """Its id, which every command takes."""
        return self.aio.id

    @property
    def status(self) -> str:
        """running, paused, failed, finished, cancelled or deleted."""
        return run_sync(self.aio.status)

    @property
    def progress(self) -> RunProgress:
        """How far it is, in numbers."""
        return run_sync(self.aio.progress)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, {self.status})"

    def overview(self) -> dict[str, Any]:
        """What it came to, as `agent0 run show --json` prints it."""
        return run_sync(self.aio.overview)

    def metrics(self, *columns: str) -> Rows:
        """What it measured, as ``AsyncRun.metrics``; ``.frame()`` of it is a data frame."""
        return run_sync(lambda: self.aio.metrics(*columns))

    def ledger(self) -> Rows:
        """How often it asked each row of its file of questions, as ``AsyncRun.ledger``."""
        return run_sync(self.aio.ledger)

    def events(self, type: str = "", task: str = "", after: int = 0, *, follow: bool = False) -> Iterator[Recorded]:
        """Its events in the order of the log, typed, as ``AsyncRun.events``; ``follow``: those to come, too."""
        required_types(type)
        parts = iterate_sync(lambda: self.aio.parts(type, task, after, follow=follow))
        return (recorded for part in parts for recorded in part)

    def wait(self, timeout: float | None = None) -> str:
        """Wait until it is over or paused, or for ``timeout`` seconds; its status then. Ctrl-C ends the waiting alone:
        the run goes on."""
        return run_sync(lambda: self.aio.wait(timeout))

    def pause(self, reason: str = "") -> None:
        """Begin nothing new in it; what is in hand is finished and nothing is lost."""
        run_sync(lambda: self.aio.pause(reason))

    def resume(self, *, wait: bool = True) -> Self:
        """Go on with it where it was paused or has failed; ``wait`` until it is over."""
        run_sync(lambda: self.aio.resume(wait=wait))
        return self

    def cancel(self, reason: str = "") -> None:
        """End it for good; its events stay."""
        run_sync(lambda: self.aio.cancel(reason))

    def fork(
        self, at: int = 0, settings: Mapping[str, object] = {}, *, name: str = "", wait: bool = True
    ) -> "RunHandle":
        """Start a run that goes on from this one under other ``settings``, as ``AsyncRun.fork``."""
        return RunHandle(run_sync(lambda: self.aio.fork(at, settings, name=name, wait=wait)))

    def on(self, callback: Callback, type: str = "", after: int = 0) -> Background[None]:
        """Call ``callback`` in a thread with each of its events (of a ``type``, behind ``after``), until it is over.
        ``.stop()`` of what it returns ends that, ``.join()`` waits for the last one."""
        required_types(type)
        background = Background(lambda: self.aio.on(callback, type, after))
        background.start()
        return background

    def _repr_html_(self) -> str:
        from agent0.report.charts.learning_curve import drawn_curve  # noqa: PLC0415 - matplotlib

        summary = self.overview()
        profile = f"profile {text(summary['profile'])}, seed {summary['seed']}"
        head = f"<h4>{text(self.id)}: {text(summary['status'])}, {profile}</h4>"
        style = ";".join(f"--{name}:{colour}" for name, colour in _COLOURS.items())
        scores = html_table(rows_for_people(summary)) if summary["test"] else ""
        start = first_student(summary["student_adapter"])
        curve = drawn_curve(self.id, summary["shared"] + summary["validation"], summary["test"], start)
        return f'<div style="{style};max-width:720px">{head}{curve}{scores}</div>'

    def _ipython_display_(self) -> None:
        """Show it in a notebook; the curve of a run that is not over is drawn anew whenever it has a score more."""
        display, is_over = import_module("IPython.display"), self.status in OVER
        shown = display.display(display.HTML(self._repr_html_()), display_id=True)
        if not is_over:
            last = max((event.seq for event in self.events(DRAWN)), default=0)
            self.on(lambda _: shown.update(display.HTML(self._repr_html_())), f"{DRAWN},{','.join(ENDS)}", last)
