"""The bus: FastStream subscribers carry the log's events to handlers and store what they answer.

A subscriber only starts a task, and takes as many messages as its handler has free slots. So a slow reaction holds up
nothing but its own place, and what a process cannot begin is left to others.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from faststream import AckPolicy
from faststream.nats import JStream, NatsBroker, PullSub
from faststream.nats.message import NatsBatchMessage
from faststream.nats.security import NatsCredentials, NatsNKey, NatsSecurity, NatsUserPassword
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js.api import ConsumerConfig

from agent0.errors import Agent0Error, DependencyError, LogError
from agent0.events.base import NewerEventError, Recorded, require_subject
from agent0.infra.bus import user_code
from agent0.infra.bus.affinity import ModelOf, loads_nothing
from agent0.infra.bus.arrivals import Arrivals, Pulling
from agent0.infra.bus.deliveries import Advisory, Reaction, Work
from agent0.infra.bus.dispatch import HAND_BACK_S, Reactions
from agent0.infra.bus.group_commit import Committer
from agent0.infra.bus.log_wait import LogWait
from agent0.infra.bus.run_consumers import Lacks, RunConsumers, lacks_nothing
from agent0.infra.bus.run_views import NewerRunError, Views
from agent0.infra.log.connection import Link, die, reconnecting
from agent0.infra.log.event_log import Log
from agent0.infra.log.folding import Evolve
from agent0.infra.log.nats_server import ConnectOptions
from agent0.infra.log.set_aside import advice, visible_body
from agent0.infra.log.state_snapshots import Snapshots
from agent0.infra.log.streams import ADVISORIES, EVENTS, GIVEN_UP, Topology, check, check_durables
from agent0.settings import Settings

PULL_S = 5.0
LOOK_S = 10.0
"""How often the durables are looked at."""
AGAIN_S = 0.5
STARVED_S = 60.0
CLOCK_S = 30.0
"""By so many seconds the clock here may differ from that of the log's server."""
GRACE_S = 30.0


class Bus:
    """The handlers of one process at work.

    ``ports`` maps parameter names to adapters. ``evolve`` is the fold whose result handlers get as ``run``.
    ``fatal`` is told why the process must end (default: it ends, status 70). With ``snapshots`` a long run is not
    folded from its beginning. ``lacks``: what this process has not, which a handler needs for a run; it takes none of
    those messages. ``model_of``: what it loads for a run; it takes first what it has loaded the model of.
    """

    def __init__(
        self,
        log: Log,
        handlers: Iterable[Reaction],
        ports: Mapping[str, object],
        evolve: Evolve,
        settings: Settings,
        code_rev: str = "",
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        fatal: Callable[[str], None] = die,
        snapshots: Snapshots | None = None,
        lacks: Lacks = lacks_nothing,
        model_of: ModelOf = loads_nothing,
    ) -> None:
        self._log, self._handlers, self._fatal = log, tuple(handlers), fatal
        self._topology = Topology(settings.nats, settings.handlers)
        self._clock = clock
        self._ack_wait_s = settings.handlers.ack_wait_s
        self._views = Views(log, evolve, snapshots)
        wait = LogWait(settings.home)
        self.committer = Committer(log, settings.handlers.commit_ms / 1000, fatal, wait)
        self._reactions = Reactions(
            log, self._views, self.committer, ports, settings, code_rev, clock, fatal, self._lacks_for
        )
        rest = (self._reactions.report, clock, fatal, code_rev, lambda: wait.text, model_of, self._reactions.longest)
        self.run_consumers = RunConsumers(log, self._views, self._topology, self._handlers, lacks, *rest)
        self._link = Link(log.server)
        self._broker: _Broker | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch: list[asyncio.Task[None]] = []
        self._pulse = _Pulse(fatal, settings.home)

    async def start(self) -> None:
        """Begin to react.

        Raises:
            LogError: the log or a durable is missing or has drifted.
            DependencyError: the server does not answer, or the clock here is another than its.
        """
        await self._check()
        await self._check_clock()
        self.committer.start()
        self._broker = self._subscribers()
        try:
            await self._broker.start()
            await self.run_consumers.start(self._broker.arrivals)
        except (Error, TimeoutError) as error:
            await self.stop(0)
            raise DependencyError("log", "It went away while the handlers began.", "Start them again.") from error
        except BaseException:
            await self.stop(0)
            raise
        self._watch = [asyncio.create_task(self._look(), name="durables")]
        self._pulse.start()

    async def _check(self) -> None:
        """Raises as ``check``; a server that is slow is asked again, as patiently as an append is tried."""
        deadline = monotonic() + self._log.patience_s
        while True:
            try:
                return await check(self._log.client, self._topology, self._handlers)
            except DependencyError:
                if monotonic() > deadline:
                    raise
                await asyncio.sleep(AGAIN_S)

    async def _check_clock(self) -> None:
        """Raises DependencyError where this clock is wrong: it stamps events, and tells whether what a reaction stored
        is still among what the server remembers."""
        at = (await self._log.info()).time
        ahead_s = (self._clock() - at).total_seconds() if at else 0.0
        if abs(ahead_s) > CLOCK_S:
            why = f"It is {abs(ahead_s):,.0f} s {'ahead of' if ahead_s > 0 else 'behind'} that of the log's server."
            fix = "Set it, as by `timedatectl set-ntp true`, then start this process again."
            raise DependencyError(f"the right time on {socket.gethostname()}", why, fix)

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """Take nothing new, finish what runs within ``grace_s``, give the rest back, and what waits at once."""
        self._link.closing = True
        self._pulse.stop()
        for task in self._watch:
            task.cancel()
        await self.run_consumers.stop()
        for subscriber in self._broker.subscribers if self._broker else ():
            await subscriber.stop()
        self._reactions.stop_waiting()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s)
        for task in (left := tuple(self._tasks)):
            task.cancel()
        await asyncio.gather(*left, *self._watch, return_exceptions=True)
        await self.committer.stop()
        await self._views.close()
        if self._broker:
            with contextlib.suppress(Error, OSError):  # the server may have died: what it had not acked comes again
                await self._broker.stop()
            self._broker = None

    async def idle(self) -> bool:
        """Whether nothing is under way here and the durables have nothing left to deliver."""
        if self._reactions.busy():
            return False
        try:
            if not await self.run_consumers.resolved():
                return False
            for handler in self._handlers:
                for name in (handler.name, *(f"{handler.name}-{run_id}" for run_id in self.run_consumers.runs())):
                    info = await self._log.client.jsm().consumer_info(EVENTS, name)
                    if info.num_pending or info.num_ack_pending:
                        return False
        except (Error, TimeoutError, Agent0Error):
            return False
        return not self._reactions.busy()

    # --- subscribers ----------------------------------------------------------------------------------------------

    def _subscribers(self) -> "_Broker":
        options = self._log.server.options(self._log.role)
        broker = _Broker(
            self._link,
            {GIVEN_UP: 1, **{handler.name: self._topology.in_flight(handler) for handler in self._handlers}},
            options["servers"],
            security=_security(options),
            **reconnecting(self._link),
            name="agent0 bus",
            graceful_timeout=1,
            ack_policy=AckPolicy.MANUAL,
            decoder=_whole,
            apply_types=False,
            serializer=None,
            logger=None,
        )
        for handler in self._handlers:
            slots = self._topology.in_flight(handler)
            self._subscribe(broker, EVENTS, handler.name, slots, self._taking(handler, broker))
        self._subscribe(broker, ADVISORIES, GIVEN_UP, 1, self._given_up)
        return broker

    def _subscribe(self, broker: NatsBroker, stream: str, durable: str, slots: int, take: Any) -> None:
        subscriber = broker.subscriber(
            config=ConsumerConfig(filter_subjects=[">"]),  # the durable exists: its own filter counts
            durable=durable,
            stream=JStream(stream, declare=False),
            pull_sub=PullSub(batch_size=slots, timeout=min(PULL_S, self._ack_wait_s / 2), batch=True),
            no_reply=True,
        )
        subscriber(take)

    def _taking(self, handler: Reaction, broker: "_Broker") -> Any:
        async def take(batch: NatsBatchMessage) -> None:
            arrivals = broker.arrivals[handler.name]
            for message in batch.raw_message:
                arrivals.begin(message)
                task = asyncio.create_task(self._handle(handler, message))
                self._tasks.add(task)
                task.add_done_callback(partial(self._ended, arrivals, message))

        return take

    async def _handle(self, handler: Reaction, message: Msg) -> None:
        if recorded := await self._recorded(message):
            of_run = message.metadata.consumer != handler.name
            if of_run:
                self.run_consumers.use(handler, recorded.run)
            await self._reactions.handle(handler, _NatsDelivery(recorded, message, self._ack_wait_s, of_run))

    async def _lacks_for(self, work: Work) -> bool:
        return await self.run_consumers.lacks_for(work)

    def _ended(self, arrivals: Arrivals, message: Msg, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        arrivals.end(message)

    async def _recorded(self, message: Msg) -> Recorded | None:
        """What a message holds; None where it was set aside or left to a newer process, or where this one
        ends because of it."""
        seq = message.metadata.sequence.stream
        try:
            recorded = self._log.decode(seq, message.data)
            require_subject(recorded.subject, message.subject)
            return recorded
        except ValueError as error:
            if visible_body(self._log.asides, seq, message.data, message.subject) != message.data:
                await message.ack()
            elif isinstance(error, NewerEventError):
                await self.run_consumers.refuse(NewerRunError(message.subject.split(".")[2], error))
                await message.nak(HAND_BACK_S)
            else:
                self._fatal(f"{message.subject} cannot be read ({error}). {advice(seq)}")
            return None

    async def _given_up(self, batch: NatsBatchMessage) -> None:
        arrivals = self._broker.arrivals[GIVEN_UP] if self._broker else None
        for message in batch.raw_message:
            if arrivals:
                arrivals.begin(message)
                arrivals.end(message)
            try:
                await self._reactions.give_up(Advisory.read(message.data))
                await message.ack()
            except Agent0Error:
                await message.nak(LOOK_S)

    # --- watching over ourselves ----------------------------------------------------------------------------------

    async def _look(self) -> None:
        """A deleted durable looks like silence, and like peace: look for it."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await check_durables(self._log.client, self._topology, self._handlers)
            except LogError as error:
                self._fatal(str(error))
                return
            except DependencyError:
                continue  # the server is away; the client reconnects


class _Broker(NatsBroker):
    """FastStream's, over a client of ours, which asks who answers before it sends the password; messages are taken as
    they arrive, as many of a durable as it has ``slots``."""

    def __init__(self, link: Link, slots: dict[str, int], *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._link, self._pulling = link, Pulling(link, slots)

    @property
    def arrivals(self) -> dict[str, Arrivals]:
        """What arrives, by durable."""
        return self._pulling.arrivals

    async def _connect(self) -> Client:
        client = self._link.client
        await client.connect(**self._connection_kwargs)
        self.config.connect(client)
        self.config.connection_state.connect(client, self._pulling)
        return client


class _NatsDelivery:
    """One delivery by the server."""

    def __init__(self, recorded: Recorded, message: Msg, ack_wait_s: float, of_run: bool) -> None:
        metadata, self.of_run = message.metadata, of_run
        self.recorded, self.deliveries, self.stored_at = recorded, metadata.num_delivered, metadata.timestamp
        self._message, self._beat_s = message, ack_wait_s / 3
        self._beats: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    async def ack(self) -> None:
        if not self._message.is_acked:
            await self._message.ack()

    async def nack(self, delay_s: float) -> None:
        if not self._message.is_acked:
            await self._message.nak(delay_s)

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        self._schedule()
        try:
            yield
        finally:
            if self._beats:
                self._beats.cancel()

    def _schedule(self) -> None:
        self._beats = asyncio.get_running_loop().call_later(self._beat_s, self._beat)

    def _beat(self) -> None:
        self._sending = asyncio.ensure_future(self._message.in_progress())
        self._schedule()


class _Pulse:
    """A thread that ends the process when the event loop no longer turns: heartbeats would starve in silence."""

    def __init__(self, fatal: Callable[[str], None], home: Path) -> None:
        self._fatal, self._home, self._seen = fatal, home, monotonic()
        self._thread = 0
        self._stopped = threading.Event()
        self._beats: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._beat(asyncio.get_running_loop())
        self._thread = threading.get_ident()
        threading.Thread(target=self._look, name="pulse", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        if self._beats:
            self._beats.cancel()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._seen = monotonic()
        self._beats = loop.call_later(STARVED_S / 10, self._beat, loop)

    def _look(self) -> None:
        while not self._stopped.wait(STARVED_S / 6):
            stood = monotonic() - self._seen
            if stood <= STARVED_S / 6:
                continue
            location, over = user_code.running(self._thread), stood > STARVED_S
            user_code.write(self._home, location, stood, ended=over)
            if over:
                self._fatal(
                    f"the event loop has not turned for {STARVED_S:.0f} s" + (f", in {location}" if location else "")
                )
                return


async def _whole(message: NatsBatchMessage) -> NatsBatchMessage:
    """Subscribers get the messages themselves: they need their positions, and they alone acknowledge."""
    return message


def _security(options: ConnectOptions) -> NatsSecurity:
    tls = options.get("tls")
    if "user_credentials" in options:
        return NatsCredentials(options["user_credentials"], ssl_context=tls)
    if "nkeys_seed_str" in options:
        return NatsNKey.from_seed(options["nkeys_seed_str"], ssl_context=tls)
    if "user" in options:
        return NatsUserPassword(options["user"], options["password"], ssl_context=tls)
    return NatsSecurity(ssl_context=tls)
