"""What one process knows of a run: its state at every recent event, and which reactions are already stored.

One reader follows each run; everything here is a fold over what that reader saw, so it can be dropped at any time.
"""

import asyncio
import contextlib
from bisect import bisect_right
from collections import Counter, OrderedDict
from datetime import datetime
from typing import Any

from agent0.errors import DependencyError, TransientError
from agent0.events.alarms import DependencyLost, DependencyRestored, ReactionRetried, ReactionTried
from agent0.events.base import NewerEventError, Recorded, decode
from agent0.events.runs import RunCancelled, RunResumed
from agent0.infra.log.event_log import Log
from agent0.infra.log.folding import Evolve, state_before
from agent0.infra.log.state_snapshots import Snapshot, Snapshots, SnapshotWriter

RECENT = 4096
"""States kept by sequence."""
EVERY = 512
"""Of the older ones every so many is kept, so that any state is at most this many events away."""
IDLE_VIEWS = 16
"""Views of runs that are over, or of no run, which stay in memory."""
_NOTED = (RunResumed, RunCancelled, DependencyLost, DependencyRestored, ReactionTried, ReactionRetried)


class BrokenViewError(Exception):
    """A run can no longer be followed: its events are missing or unreadable."""


class NewerRunError(DependencyError):
    """A run has an event that a newer Agent0 wrote: this process takes none of its work, others go on."""

    def __init__(self, run: str, event: NewerEventError) -> None:
        self.run = run
        writer = f"Agent0 {event.writer}" if event.writer else "a newer Agent0"
        why, fix = f"Event {event.seq} of run {run}: {event}", "Start a process of that version in place of this"
        super().__init__(writer, why, f"{fix}. Where no Agent0 wrote it: agent0 events set-aside {event.seq}")


def newer_event(error: BaseException | None) -> NewerEventError | None:
    """The event that is not known here, where ``error`` was raised because of one."""
    while error and not isinstance(error, NewerEventError):
        error = error.__cause__
    return error if isinstance(error, NewerEventError) else None


class RunView:
    """A run as of ``seq``. ``done`` holds (cause, handler) of every stored reaction."""

    def __init__(self, log: Log, run: str, evolve: Evolve, snapshots: Snapshots | None = None) -> None:
        self.run, self.seq = run, 0
        self.state: Any = None
        self.done: set[tuple[str, str]] = set()
        self.failed: Counter[tuple[str, str]] = Counter()
        """(cause, handler) -> tries that failed."""
        self.crashed: Counter[tuple[str, str]] = Counter()
        """(cause, handler) -> beginnings that were noted and that nothing followed."""
        self.lost: dict[tuple[str, str], datetime] = {}
        """(dependency, handler) that the log says is waited for, and since when, or since the run was resumed."""
        self.tasks: set[asyncio.Task[Any]] = set()
        """Reactions under way: they end when the run is cancelled."""
        self.ended: set[asyncio.Task[Any]] = set()
        """Those that were ended so, until they noticed."""
        self._log, self._evolve, self._snapshots = log, evolve, snapshots
        self._writer: SnapshotWriter | None = None
        self._recent: OrderedDict[int, Any] = OrderedDict()
        self._base: Any = None
        """What the run began with: a fork's is the state of its parent there."""
        self._marks: list[tuple[int, Any]] = []
        self._blocks: OrderedDict[int, dict[int, Any]] = OrderedDict()
        """By the sequence of the mark at which they begin."""
        self._folding = asyncio.Lock()
        self._count = 0
        self.stopped = asyncio.Event()
        """Set while the run is paused, failed or over: nobody goes on waiting for a dependency."""
        self.caught_up = False
        self._moved = asyncio.Event()
        self._reader = asyncio.create_task(self._follow(), name=f"view of {run}")

    @property
    def status(self) -> str:
        """Of the newest state known; a run without a state counts as running."""
        return "running" if self.state is None else str(self.state.status)

    @property
    def over(self) -> bool:
        """Nothing more will be done in it."""
        return self.status in ("finished", "cancelled")

    @property
    def of_no_run(self) -> bool:
        """Whether these are events of something else than a run, as of a day's budget."""
        return self.caught_up and self.state is None

    @property
    def give_up_after(self) -> float:
        """Seconds for which the run waits for a dependency; 0: for ever."""
        return float(getattr(getattr(self.state, "config", None), "give_up_after", 0))

    async def reach(self, seq: int) -> None:
        """Wait until everything up to ``seq``, an event of this run, is folded in."""
        while self.seq < seq:
            if self._reader.cancelled():
                raise TransientError(f"The view of {self.run} was dropped.")
            if self._reader.done():
                self.require_known()
                raise BrokenViewError(f"run {self.run} cannot be followed: {self._reader.exception()}")
            self._moved.clear()
            await self._moved.wait()

    @property
    def newer(self) -> NewerEventError | None:
        """The event at which this view ends because it is not known here."""
        ended = self._reader.done() and not self._reader.cancelled()
        return newer_event(self._reader.exception()) if ended else None

    def require_known(self) -> None:
        """Raises NewerRunError where the run has an event that is not known here."""
        if event := self.newer:
            raise NewerRunError(self.run, event)

    async def broken(self) -> None:
        """Wait until this view can no longer follow its run, or is dropped."""
        await asyncio.wait({self._reader})

    async def reach_end(self) -> None:
        """Wait until everything stored before this call is folded in."""
        await self.reach(await self._log.last_seq(self.run))

    async def state_at(self, seq: int) -> Any:
        """The state right after the event ``seq`` of this run (which must have been reached)."""
        if seq in self._recent:
            return self._recent[seq]
        async with self._folding:
            if seq < self._marks[0][0]:
                await self._mark_before(seq)
            number = bisect_right(self._marks, seq, key=lambda mark: mark[0]) - 1
            begin = self._marks[number][0]
            if begin not in self._blocks:
                self._blocks[begin] = await self._fold_block(number)
                if len(self._blocks) > RECENT // EVERY:
                    self._blocks.popitem(last=False)
            return self._blocks[begin][seq]

    async def _mark_before(self, seq: int) -> None:
        """Keep states from before the snapshot that this view began with, from an older one or the beginning on."""
        first = self._marks[0][0]
        snapshot = await self._snapshots.newest(self.run, seq) if self._snapshots else None
        start, state = (snapshot.seq, snapshot.state) if snapshot else (0, await self._began_with())
        marks, count = [(start, state)], 0
        async with contextlib.aclosing(self._log.read(self.run, after=start, until=first - 1)) as events:  # type: ignore[type-var]
            async for recorded in events:
                state, count = self._evolve(state, recorded), count + 1
                if count % EVERY == 0:
                    marks.append((recorded.seq, state))
        self._marks[:0] = marks

    async def _fold_block(self, number: int) -> dict[int, Any]:
        """States from one mark to the next, once more: causes that wait for long tend to wait together."""
        start, state = self._marks[number]
        until = self._marks[number + 1][0] if number + 1 < len(self._marks) else self.seq
        states = {start: state}
        async with contextlib.aclosing(self._log.read(self.run, after=start, until=until)) as events:  # type: ignore[type-var]
            async for recorded in events:
                states[recorded.seq] = state = self._evolve(state, recorded)
        return states

    async def close(self) -> None:
        """Stop reading."""
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def _follow(self) -> None:
        try:
            snapshot = await self._snapshots.newest(self.run) if self._snapshots else None
            if snapshot:
                self._restore(snapshot)
            else:
                self._base = await self._began_with()
                self._marks.append((0, self._base))
            if self._snapshots and self._snapshots.every:
                self._writer = SnapshotWriter(self._snapshots, snapshot, RECENT)
            async for recorded in self._log.tail(self.seq, self.run):
                self._fold(recorded)
                self._moved.set()
                if self._writer:
                    await self._writer.take(recorded, self._recent, noted=isinstance(recorded.event, _NOTED))
        finally:
            self._moved.set()  # waiters find the reader done and raise what ended it

    async def _began_with(self) -> Any:
        """What the run began with: a fork's is the state of its parent there."""
        return await state_before(self._log, self.run, self._evolve, self._snapshots)

    def _restore(self, snapshot: Snapshot) -> None:
        """Know what folding up to the snapshot would have left."""
        for part in snapshot.parts:
            for seq, body in part.notes:
                self._note(decode(body, seq))
            for handler, causes in part.done.items():
                self.done.update((cause, handler) for cause in causes)
        self.seq, self.state = snapshot.seq, snapshot.state
        self._recent[self.seq] = self.state
        self._marks.append((self.seq, self.state))
        self._tell_status()

    def _tell_status(self) -> None:
        (self.stopped.clear if self.status == "running" else self.stopped.set)()

    def _fold(self, recorded: Recorded) -> None:
        state = self._base if self.state is None else self.state
        self.seq, self.state = recorded.seq, self._evolve(state, recorded)
        self._tell_status()
        self._recent[recorded.seq] = self.state
        if len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        self._count += 1
        if self._count % EVERY == 0:
            self._marks.append((recorded.seq, self.state))
        if recorded.cause and recorded.handler:
            self.done.add((recorded.cause, recorded.handler))
        self._note(recorded)

    def _note(self, recorded: Recorded) -> None:
        match recorded.event:
            case RunResumed():
                self.lost = dict.fromkeys(self.lost, recorded.time)
            case RunCancelled():
                self.ended |= self.tasks
                for task in self.tasks:
                    task.cancel()
            case DependencyLost(dependency=dependency, waiting=handler):
                self.lost.setdefault((dependency, handler), recorded.time)
            case DependencyRestored(dependency=dependency, waiting=handler):
                self.lost.pop((dependency, handler), None)
            case ReactionTried() | ReactionRetried() as tried:
                self._count_try(tried)

    def _count_try(self, tried: ReactionTried | ReactionRetried) -> None:
        if isinstance(tried, ReactionRetried):
            key = tried.cause_id, tried.failed_handler
            self.failed[key] = self.crashed[key] = 0
            self.done.discard(key)
            if self._writer:
                self._writer.forget(key)
        else:
            key = tried.cause_id, tried.tried_handler
            self.failed[key] += tried.outcome == "failed"
            self.crashed[key] += (tried.outcome == "begun") - tried.noted


class Views:
    """The views of one process; those of runs that are over are dropped, oldest first."""

    def __init__(self, log: Log, evolve: Evolve, snapshots: Snapshots | None = None) -> None:
        self._log, self._evolve, self._snapshots = log, evolve, snapshots
        self._views: OrderedDict[str, RunView] = OrderedDict()

    async def get(self, run: str) -> RunView:
        """The view of ``run``, made where needed; a new one knows everything stored before this call, unless an event
        of it is not known here (``newer``)."""
        if run not in self._views:
            self._views[run] = RunView(self._log, run, self._evolve, self._snapshots)
            await self._drop()
        self._views.move_to_end(run)
        view = self._views[run]
        if not view.caught_up:
            with contextlib.suppress(NewerRunError):
                await view.reach_end()
            view.caught_up = True
        return view

    async def close(self) -> None:
        """Stop all readers."""
        for view in self._views.values():
            await view.close()
        self._views.clear()

    async def _drop(self) -> None:
        idle = [run for run, view in self._views.items() if (view.over or view.of_no_run) and not view.tasks]
        for run in idle[: max(0, len(idle) - IDLE_VIEWS)]:
            await self._views.pop(run).close()
