"""Which runs this process takes messages of: those that are under way, of handlers for which it lacks nothing.

While a run goes on, each handler has a consumer of its own for it. A run that is paused is not asked for, so
what it has left stays where it is, for whichever process comes when it is resumed.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from nats.errors import Error

from agent0.errors import Agent0Error, DependencyError, LogError, bare_url
from agent0.events.alarms import DependencyLost
from agent0.events.base import Event, Recorded
from agent0.events.runs import PriorityChanged, RunCancelled, RunFinished, RunResumed, RunStarted
from agent0.infra.bus.affinity import Affinity, ModelOf, loads_nothing
from agent0.infra.bus.arrivals import Arrivals
from agent0.infra.bus.deliveries import Reaction, Work
from agent0.infra.bus.processes import Processes, ProcessReply, ask
from agent0.infra.bus.run_standing import CONTROL, RunsUnderWay
from agent0.infra.bus.run_views import BrokenViewError, NewerRunError, RunView, Views, newer_event
from agent0.infra.log.connection import apart
from agent0.infra.log.event_log import Log
from agent0.infra.log.streams import EVENTS, Topology

LOOK_S = 10.0
"""How often a process looks whether it can do by now what it could not, and whether another can."""
ENDED_S = 1.0
"""The server forgets the consumers of a run that is over after so long."""
AGAIN_S = 1.0
DIVIDE_S = 3.0
"""How often a process looks which runs of several models others have the models of."""

Lacks = Callable[[Reaction, Any], Awaitable[DependencyError | None]]
"""(handler, state of a run; where there is no run, the event that asks) -> what this process lacks for it."""


async def lacks_nothing(handler: Reaction, basis: Any) -> DependencyError | None:
    """Say of every handler and run that this process can execute it: None."""
    return None


class RunConsumers:
    """The consumers of one process, opened and closed as runs begin, pause and end."""

    def __init__(
        self,
        log: Log,
        views: Views,
        topology: Topology,
        handlers: Sequence[Reaction],
        lacks: Lacks,
        tell: Callable[[Event, Recorded], Awaitable[object]],
        clock: Callable[[], datetime],
        fatal: Callable[[str], None],
        version: str = "",
        waits: Callable[[], str] = str,
        model_of: ModelOf = loads_nothing,
        longest: Callable[[], str] = str,
    ) -> None:
        self._log, self._views, self._topology, self._handlers = log, views, topology, handlers
        self._affinity = Affinity(log, model_of)
        self._open_views: dict[str, RunView] = {}
        self._changed = asyncio.Event()
        self._lacks, self._tell, self._clock, self._fatal = lacks, tell, clock, fatal
        self._arrivals: Mapping[str, Arrivals] = {}
        self._runs = RunsUnderWay()
        self._begun, self._priorities = self._runs.begun, self._runs.priorities
        self._missing: dict[str, dict[str, DependencyError]] = {}
        """Of runs under way, and of what was given back: handler -> what this process lacks for it."""
        self._returned: dict[str, Work] = {}
        """What came by a handler's own consumer and was given back to it, by the run of its cause."""
        self._late: set[tuple[str, str]] = set()
        self._watched: set[str] = set()
        self._refused: set[str] = set()
        """Runs with an event that is not known here."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._seq = 0
        slots = max((topology.in_flight(handler) for handler in handlers), default=0)
        names = [handler.name for handler in handlers]
        asked = waits, self._affinity.loaded, longest, self._in_hand
        self._processes = Processes(log, names, self._missing, slots, version, *asked)

    async def start(self, arrivals: Mapping[str, Arrivals]) -> None:
        """Open the consumers of the runs that are under way, and follow what becomes of runs."""
        self._arrivals = arrivals
        await self._processes.start()
        self._seq = await self._log.last_seq()
        if self._seq:
            async for recorded in self._controls(0, self._seq):
                self._note(recorded)
        for run in list(self._begun):
            self._open(run)
        self._spawn(self._follow(), "runs")
        self._spawn(self._look(), "what is lacking")
        self._spawn(self._divide(), "shares of runs")

    async def stop(self) -> None:
        """Open nothing more."""
        await _ended(*self._tasks, *self._opening.values())
        await self._processes.stop()

    async def lacks_for(self, work: Work) -> bool:
        """Whether this process lacks something for ``work``, which came by its handler's own consumer and is to go back
        there: another process may have it."""
        run = work.cause.run
        lacking = await self._lacks(work.handler, work.cause.event if work.view.state is None else work.view.state)
        if lacking:
            self._missing.setdefault(run, {})[work.handler.name], self._returned[run] = lacking, work
        elif self._returned.pop(run, None):
            self._missing.pop(run, None)
        return lacking is not None

    def _in_hand(self) -> dict[str, int]:
        return {name: arrivals.in_hand for name, arrivals in self._arrivals.items() if arrivals.in_hand}

    def runs(self) -> list[str]:
        """Runs that are under way."""
        return list(self._begun)

    async def resolved(self) -> bool:
        """Whether everything that became of runs before this call is known here."""
        for kind in CONTROL:
            if (await self._log.newest(f"a0.ev.*.*.*.{kind}"))[0] > self._seq:
                return False
        return not self._opening

    def use(self, handler: Reaction, run: str) -> None:
        """Note that ``handler`` works for ``run``, for which it may load a model."""
        if view := self._open_views.get(run):
            self._affinity.use(handler, view.state)

    def _spawn(self, work: Any, name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        """A process that no longer follows runs would take no work, in silence: it ends."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._fatal(f"what becomes of runs cannot be followed: {error}")

    # --- what becomes of runs -------------------------------------------------------------------------------------

    def _note(self, recorded: Recorded) -> None:
        self._runs.note(recorded)
        if isinstance(recorded.event, RunStarted | RunResumed):
            self._late = {key for key in self._late if key[0] != recorded.run}

    async def _controls(self, after: int, until: int = 0) -> AsyncIterator[Recorded]:
        """What became of runs up to ``until`` (0: from now on), but for what a newer Agent0 wrote: the view of that run
        ends there, too."""
        while not until or after < until:
            try:
                events = self._log.read(types=CONTROL, after=after, until=until) if until else None
                async for recorded in events or self._log.tail(after, types=CONTROL):
                    yield recorded
                return
            except LogError as error:
                if not (event := newer_event(error)):
                    raise
                after = event.seq

    async def _follow(self) -> None:
        async for recorded in self._controls(self._seq):
            self._note(recorded)
            if isinstance(recorded.event, PriorityChanged):
                self._share()
            elif recorded.run in self._begun:
                self._open(recorded.run)
            else:
                await self._close(recorded)
            self._seq = recorded.seq

    def _open(self, run: str) -> None:
        if run not in self._opening:
            task = self._opening[run] = asyncio.create_task(self._open_all(run), name=f"consumers of {run}")
            task.add_done_callback(lambda _: self._opening.pop(run, None))

    async def _open_all(self, run: str) -> None:
        """Open every consumer of ``run`` for which nothing is lacking here; try again until the server answers."""
        while run in self._begun:
            try:
                view = self._open_views[run] = await self._views.get(run)
                self._share()
                for handler in self._handlers:
                    await self._make(handler, run)
                view.require_known()
                for handler in self._handlers:
                    await self._open_consumer(handler, run, view)
                if run not in self._watched:
                    self._watched.add(run)
                    self._spawn(self._watch(view), f"what is newer in {run}")
                return
            except NewerRunError as error:
                await self.refuse(error)
                return
            except BrokenViewError as error:
                self._fatal(str(error))
                return
            except Exception as error:  # a run whose consumers stay closed would stand still, and nobody would know why
                logging.getLogger(__name__).warning("the consumers of %s cannot be opened yet: %s", run, error)
                await asyncio.sleep(AGAIN_S)

    async def _open_consumer(self, handler: Reaction, run: str, view: RunView) -> None:
        lacking = await self._lacks(handler, view.state)
        if lacking:
            self._missing.setdefault(run, {})[handler.name] = lacking
        elif run in self._begun:
            self._missing.get(run, {}).pop(handler.name, None)
            await self._arrivals[handler.name].add(run, f"{handler.name}-{run}")

    async def _watch(self, view: RunView) -> None:
        """Refuse the run from the moment at which it has an event that is not known here."""
        await view.broken()
        self._watched.discard(view.run)
        if event := view.newer:
            await self.refuse(NewerRunError(view.run, event))

    async def refuse(self, error: NewerRunError) -> None:
        """Take nothing more of a run that a newer Agent0 carries on, and say so to whoever asks."""
        if error.run not in self._refused:
            self._refused.add(error.run)
            logging.getLogger(__name__).warning("no work of run %s is taken any more: %s", error.run, error)
        self._missing[error.run] = {handler.name: error for handler in self._handlers}
        for arrivals in self._arrivals.values():
            await arrivals.remove(error.run)

    async def _make(self, handler: Reaction, run: str) -> None:
        consumer = self._topology.run_consumer(handler, run)
        await apart(self._log.client.jsm().add_consumer(EVENTS, consumer))

    async def _close(self, recorded: Recorded) -> None:
        if opening := self._opening.get(recorded.run):
            await _ended(opening)
        self._missing.pop(recorded.run, None)
        self._open_views.pop(recorded.run, None)
        self._affinity.forget(recorded.run)
        for arrivals in self._arrivals.values():
            await arrivals.remove(recorded.run)
        self._share()
        if isinstance(recorded.event, RunCancelled | RunFinished):
            self._spawn(self._forget(recorded.run), f"end of {recorded.run}")

    async def _forget(self, run: str) -> None:
        """Have the server forget the consumers of a run that is over. What stays is forgotten later."""
        for handler in self._handlers:
            try:
                consumer = self._topology.run_consumer(handler, run, ENDED_S)
                await apart(self._log.client.jsm().add_consumer(EVENTS, consumer))
            except (Error, TimeoutError, OSError):
                return

    # --- shares ---------------------------------------------------------------------------------------------------

    def _share(self) -> None:
        """Divide slots by what is known here, until others are asked."""
        for handler in self._handlers:
            models = self._models(handler)
            division = self._affinity.at_first(models, self._priorities)
            self._arrivals[handler.name].share(division.weights, division.left)
        self._changed.set()

    def _models(self, handler: Reaction) -> dict[str, str]:
        return self._affinity.models(handler, {run: view.state for run, view in self._open_views.items()})

    async def _divide(self) -> None:
        """Where runs of several models go on, ask the others what they have loaded, and divide slots by that."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DIVIDE_S):
                    await self._changed.wait()
            self._changed.clear()
            handlers = [(handler, models) for handler in self._handlers if (models := self._models(handler))]
            try:
                replies = {reply.name: reply for reply in await ask(self._log)} if handlers else {}
                own = self._processes.own_reply()
                replies.setdefault(own.name, own)
                for handler, models in handlers:
                    division = await self._affinity.look(handler, models, self._priorities, replies.values(), own.name)
                    self._arrivals[handler.name].share(division.weights, division.left)
            except (Agent0Error, Error, TimeoutError, OSError):  # the server is away, or made no consumer yet
                for handler, _ in handlers:
                    self._arrivals[handler.name].share(self._priorities)

    # --- what is lacking ------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Look again for what is lacking, and open again what the server has forgotten."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                for run in list(self._begun):
                    lost = any(arrivals.refused(run) for arrivals in self._arrivals.values())
                    if lost or self._missing.get(run):
                        self._open(run)
                        await asyncio.gather(*filter(None, [self._opening.get(run)]), return_exceptions=True)
                    if self._missing.get(run):
                        await self._ask_others(run)
                for run, work in list(self._returned.items()):
                    if await self._waits(work.handler.name, run):
                        await self._ask_others(run)
                    else:
                        self._returned.pop(run, None)
                        self._missing.pop(run, None)
            except (Agent0Error, Error, TimeoutError, OSError):
                continue  # the server is away; the client reconnects

    async def _ask_others(self, run: str) -> None:
        """Where no process has what a run needs, say so in its log: one of them does."""
        replies = await ask(self._log)
        for handler, lacking in sorted(self._missing.get(run, {}).items()):
            having = [
                reply for reply in replies if handler in reply.handlers and handler not in reply.missing.get(run, {})
            ]
            lackers = [reply for reply in replies if handler in reply.missing.get(run, {})]
            if not having and lackers[:1] == [self._processes.own_reply()] and await self._waits(handler, run):
                await self._say(run, handler, lacking, replies)
                return

    async def _waits(self, handler: str, run: str) -> bool:
        """Whether there is something that nobody has done: a process that had what it needs may have ended with it."""
        if work := self._returned.get(run):
            view = await self._views.get(run)
            await view.reach_end()
            return work.key not in view.done
        info = await apart(self._log.client.jsm().consumer_info(EVENTS, f"{handler}-{run}"))
        return bool(info.num_pending or info.num_ack_pending)

    async def _say(self, run: str, handler: str, lacking: DependencyError, replies: Sequence[ProcessReply]) -> None:
        view, key = await self._views.get(run), (lacking.dependency, handler)
        fresh = key not in view.lost
        since = view.lost.setdefault(key, self._clock())
        waited = (self._clock() - since).total_seconds()
        late = bool(view.give_up_after) and waited >= view.give_up_after and (run, key[0]) not in self._late
        if late:
            self._late.add((run, key[0]))
        if fresh or late:
            there = ", ".join(str(reply) for reply in replies)
            message = f"No process has {lacking.dependency}. {lacking.why} {lacking.fix} Processes: {there}."
            lost = DependencyLost(
                dependency=key[0], waiting=handler, message=bare_url(message)[:500], waited_s=waited if late else 0
            )
            if cause := self._returned[run].cause if run in self._returned else self._begun.get(run):
                await self._tell(lost, cause)


async def _ended(*tasks: asyncio.Task[None]) -> None:
    """Cancel ``tasks`` until they have ended: before Python 3.12 the client may lose a cancellation."""
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=AGAIN_S)
