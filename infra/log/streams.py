"""What the log must look like: two streams, one durable consumer a handler, and while a run goes on one more of each
handler for it.

``init`` makes it, ``check`` refuses drift. Provisioning is explicit and uses the admin role; others only look.
"""

from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from nats.aio.client import Client
from nats.errors import Error
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    ConsumerInfo,
    DeliverPolicy,
    DiscardPolicy,
    ReplayPolicy,
    RetentionPolicy,
    StorageType,
    StoreCompression,
    StreamConfig,
)
from nats.js.errors import APIError, NotFoundError

from agent0.errors import DependencyError, LogError
from agent0.infra.log.connection import apart, connect
from agent0.infra.log.nats_server import Server
from agent0.infra.log.server_folder import provisioning
from agent0.settings import HandlerSettings, NatsSettings

EVENTS = "A0_EV"
ADVISORIES = "A0_ADV"
ARTIFACTS = "A0_ART"
GIVEN_UP = "given_up"
"""The durable on the advisories: who reads one turns it into a dead letter."""
RETRIED = "ReactionRetried"
"""The event that every consumer receives: it brings back work that was given up."""
ANY_TIME = frozenset({"RunPaused", "RunFailed", "RunCancelled", "RunFinished", "TaskSubmitted", "BudgetChanged"})
"""Events that are reacted to whatever becomes of a run: they end it, or belong to none."""
MANY = 1 << 16
"""Unacknowledged messages of a consumer over all processes: each takes as many as it has slots."""
FORGOTTEN_S = 7 * 86400.0
"""A run's consumers that no process has asked for so long are forgotten, and made again where it goes on."""

MAX_MESSAGE = 1 << 20
PAGE = 256
"""Consumers that the server names at a time."""


class Reactor(Protocol):
    """What provisioning needs to know of a handler."""

    @property
    def name(self) -> str:
        """The durable's name."""
        ...

    @property
    def events(self) -> tuple[str, ...]:
        """Class names of the events it reacts to."""
        ...

    @property
    def in_flight(self) -> int:
        """Concurrent reactions of a process; 1: in stream order."""
        ...


@dataclass(frozen=True)
class Topology:
    """The expected configuration of streams and durable consumers."""

    nats: NatsSettings
    handlers: HandlerSettings
    first_seq: int = 1
    """Of the event stream, where it is made: one that goes on from an archive keeps its numbering."""
    has_events: bool = False
    """Whether there was an event stream before: then it is not made anew in silence."""
    artifact_bytes: int = 0
    """Largest size of the stream of artifacts; 0: there is none."""

    def streams(self) -> list[StreamConfig]:
        """The event stream, the captured advisories, and where hosts share no folder the artifacts."""
        truth = StreamConfig(
            name=EVENTS,
            subjects=["a0.ev.>"],
            retention=RetentionPolicy.LIMITS,
            storage=StorageType.FILE,
            discard=DiscardPolicy.NEW,
            max_bytes=self.nats.max_bytes,
            max_msg_size=MAX_MESSAGE,
            max_msgs=-1,
            max_age=0,
            max_msgs_per_subject=-1,
            duplicate_window=self.nats.duplicate_window_s,
            num_replicas=self.nats.replicas,
            deny_delete=True,
            deny_purge=True,
            allow_direct=True,
            allow_atomic=True,
            compression=StoreCompression.S2 if self.nats.replicas == 1 else StoreCompression.NONE,  # see _MUTABLE
            first_seq=self.first_seq if self.first_seq > 1 else None,
        )
        kinds = ("MAX_DELIVERIES", "MSG_TERMINATED")
        advisories = StreamConfig(
            name=ADVISORIES,
            subjects=[f"$JS.EVENT.ADVISORY.CONSUMER.{kind}.{EVENTS}.*" for kind in kinds],
            retention=RetentionPolicy.LIMITS,
            storage=StorageType.FILE,
            discard=DiscardPolicy.OLD,
            max_bytes=256 << 20,
            max_age=30 * 86400,
            duplicate_window=120,
            num_replicas=self.nats.replicas,
        )
        return [truth, advisories, *([self._artifacts()] if self.artifact_bytes else [])]

    def _artifacts(self) -> StreamConfig:
        """One message a subject: a chunk that is there is not stored again, and none is dropped by itself."""
        return StreamConfig(
            name=ARTIFACTS,
            subjects=["a0.art.*.*"],
            retention=RetentionPolicy.LIMITS,
            storage=StorageType.FILE,
            discard=DiscardPolicy.NEW,
            max_bytes=self.artifact_bytes,
            max_msgs_per_subject=1,
            duplicate_window=120,
            num_replicas=self.nats.replicas,
            allow_direct=True,
        )

    def in_flight(self, handler: Reactor) -> int:
        """Concurrent reactions of ``handler`` in a process: the setting overrides unordered handlers only."""
        return handler.in_flight if handler.in_flight == 1 else self.handlers.in_flight or handler.in_flight

    def durable(self, handler: Reactor) -> ConsumerConfig:
        """The durable consumer of ``handler`` for what is reacted to at any time."""
        return self._consumer(handler, handler.name, "*", {*handler.events} & ANY_TIME)

    def run_consumer(self, handler: Reactor, run: str, forgotten_s: float = FORGOTTEN_S) -> ConsumerConfig:
        """The durable consumer of ``handler`` for all else that ``run`` asks of it."""
        consumer = self._consumer(handler, f"{handler.name}-{run}", run, {*handler.events} - ANY_TIME)
        consumer.inactive_threshold = forgotten_s
        return consumer

    def _consumer(self, handler: Reactor, name: str, run: str, kinds: set[str]) -> ConsumerConfig:
        return ConsumerConfig(
            name=name,
            durable_name=name,
            deliver_policy=DeliverPolicy.ALL,
            ack_policy=AckPolicy.EXPLICIT,
            replay_policy=ReplayPolicy.INSTANT,
            filter_subjects=[f"a0.ev.{run}.*.*.{kind}" for kind in sorted({*kinds, RETRIED})],
            ack_wait=self.handlers.ack_wait_s,
            max_deliver=-1,  # a process that ends uses up none: the bus itself counts tries that failed
            max_ack_pending=1 if handler.in_flight == 1 else MANY,
        )

    def durables(self, handlers: Iterable[Reactor]) -> list[tuple[str, ConsumerConfig]]:
        """(stream, durable): one a handler, and one for what the server gave up."""
        given_up = ConsumerConfig(
            name=GIVEN_UP,
            durable_name=GIVEN_UP,
            deliver_policy=DeliverPolicy.ALL,
            ack_policy=AckPolicy.EXPLICIT,
            replay_policy=ReplayPolicy.INSTANT,
            ack_wait=30,
            max_deliver=-1,
            max_ack_pending=16,
        )
        return [(ADVISORIES, given_up), *((EVENTS, self.durable(handler)) for handler in handlers)]


class GoneError(LogError):
    """There was a log, and there is none any more."""

    def __init__(self) -> None:
        super().__init__(
            "The log is gone.",
            "Its server holds no events, though this data folder has known some: the store was lost or cannot be read.",
            "Put the store back from a copy, or bring an archive into an empty data folder (`agent0 events import`); "
            "to begin anew, point AGENT0_HOME at another folder.",
        )


_MUTABLE = frozenset({"max_bytes", "num_replicas", "compression", "ack_wait", "max_deliver", "max_ack_pending"})
"""What ``init`` may change on what exists; every other difference means that someone altered the log.

Replicated streams are not compressed: nats-server 2.15.1 that was killed cannot cut a compressed block back to what its
peers agreed upon ("smb.truncate: ... s2: unsupported input"), and then takes no part any more.
"""


async def init(server: Server, topology: Topology, handlers: Iterable[Reactor], *, change: bool = True) -> None:
    """Make streams and durables; where they exist, apply changed limits, or leave them as they are where ``change`` is
    false (but a bound on deliveries, by which work is lost, is always lifted). Doing it twice changes nothing;
    several processes do it one after another.

    Raises:
        LogError: an existing stream or durable differs in a field that must not change.
        AuthError: the admin password cannot be read.
    """
    link = await connect(server, "admin")
    try:
        async with provisioning(server.folder):
            await _make(link.client, topology, handlers, change)
    except APIError as error:
        fix = "Free disk space or correct your settings."
        raise LogError("The log cannot be made.", str(error.description), fix) from error
    except (Error, TimeoutError) as error:
        raise link.away("make streams and consumers") from error
    finally:
        await link.close()


async def _make(client: Client, topology: Topology, handlers: Iterable[Reactor], change: bool) -> None:
    manager = client.jsm()
    for stream in topology.streams():
        drift = await _stream_drift(client, stream)
        if drift is None:
            if topology.has_events and stream.name == EVENTS:
                raise GoneError
            await manager.add_stream(stream)
        elif change and drift:
            _refuse(f"stream {stream.name}", _fixed(drift))
            await manager.update_stream(stream)
    for on, durable in topology.durables(handlers):
        drift = await _durable_drift(client, on, durable)
        if drift is None:
            await manager.add_consumer(on, durable)
        elif drift and (change or set(drift) == {"max_deliver"}):  # at a bound work is lost
            _refuse(f"consumer {durable.name}", _fixed(drift))
            await manager.add_consumer(on, durable)


async def check(client: Client, topology: Topology, handlers: Iterable[Reactor]) -> None:
    """Compare the log with what it must look like.

    Raises:
        LogError: a stream or durable is missing or differs; the first field is named.
        DependencyError: no answer.
    """
    with _answered():
        for stream in topology.streams():
            _require(f"stream {stream.name}", await _stream_drift(client, stream))
    await check_durables(client, topology, handlers)


async def check_durables(client: Client, topology: Topology, handlers: Iterable[Reactor]) -> None:
    """Require that the durable consumers are configured as expected (see ``Topology``)."""
    with _answered():
        for on, durable in topology.durables(handlers):
            _require(f"consumer {durable.name}", await _durable_drift(client, on, durable))


@dataclass(frozen=True)
class StreamStatus:
    """A stream: its first and last message, how many it holds and in how many bytes; None where it is missing."""

    stream: str | None
    first: int | None = None
    last: int | None = None
    messages: int | None = None
    bytes: int | None = None
    consumers: int | None = None


@dataclass(frozen=True)
class ConsumerStatus:
    """The consumers of a handler, its runs' together: events that ``wait``, that are ``in_hand`` and that came
    ``again``; None where there is none."""

    consumer: str | None
    stream: str
    wait: int | None = None
    in_hand: int | None = None
    again: int | None = None
    acked: int | None = None


async def stream_rows(client: Client, topology: Topology) -> list[StreamStatus]:
    """How each stream stands.

    Raises:
        DependencyError: no answer.
    """
    rows = []
    for stream in topology.streams():
        row = StreamStatus(stream.name)
        with _answered(), suppress(NotFoundError):
            state = (await apart(client.jsm().stream_info(stream.name or ""))).state
            extent = state.first_seq, state.last_seq, state.messages, state.bytes
            row = StreamStatus(stream.name, *extent, state.consumer_count)
        rows.append(row)
    return rows


async def standing(
    client: Client, topology: Topology, handlers: Iterable[Reactor], runs: Container[str] | None = None
) -> list[ConsumerStatus]:
    """How the consumers of each handler stand; where ``runs`` are named, those of other runs are left out.

    Raises:
        DependencyError: no answer.
    """
    rows, consumers = [], {stream: await stream_consumers(client, stream) for stream in (EVENTS, ADVISORIES)}
    for on, durable in topology.durables(handlers):
        named = [(consumer, *consumer.name.partition("-")) for consumer in consumers[on]]
        group = [c for c, of, _, run in named if of == durable.name and (runs is None or not run or run in runs)]
        counts = [(c.num_pending or 0, c.num_ack_pending or 0, c.num_redelivered or 0) for c in group]
        acked = [consumer.ack_floor.stream_seq if consumer.ack_floor else 0 for consumer in group]
        known = (*map(sum, zip(*counts, strict=True)), max(acked)) if group else ()
        rows.append(ConsumerStatus(durable.name, on, *known))
    return rows


async def stream_consumers(client: Client, stream: str) -> list[ConsumerInfo]:
    """All consumers of ``stream``; none where there is no such stream."""
    rows: list[ConsumerInfo] = []
    with _answered(), suppress(NotFoundError):
        while page := await apart(client.jsm().consumers_info(stream, offset=len(rows))):
            rows += page
            if len(page) < PAGE:
                break
    return rows


@contextmanager
def _answered() -> Iterator[None]:
    try:
        yield
    except (Error, TimeoutError) as error:
        fix = "Check that nats-server runs (`agent0 doctor`)."
        raise DependencyError("log", "It does not answer.", fix) from error


Drift = dict[str, tuple[object, object]]


def _fixed(drift: Drift) -> Drift:
    """What of it ``init`` may not change."""
    return {field: pair for field, pair in drift.items() if field not in _MUTABLE}


async def _stream_drift(client: Client, expected: StreamConfig) -> Drift | None:
    """Field -> (wanted, found); None where there is no such stream."""
    try:
        actual = (await apart(client.jsm().stream_info(expected.name or ""))).config
    except NotFoundError:
        return None
    return _difference(expected, actual)


async def _durable_drift(client: Client, stream: str, expected: ConsumerConfig) -> Drift | None:
    try:
        actual = (await apart(client.jsm().consumer_info(stream, expected.name or ""))).config
    except NotFoundError:
        return None
    if actual is None:
        return None
    if not actual.filter_subjects and actual.filter_subject:
        actual.filter_subjects = [actual.filter_subject]
    return _difference(expected, actual)


def _difference(expected: StreamConfig | ConsumerConfig, actual: StreamConfig | ConsumerConfig) -> Drift:
    """Fields left unset here are the server's own business, except those that would let history be lost."""
    pairs = {name: (_plain(value), _plain(getattr(actual, name))) for name, value in expected.__dict__.items()}
    watched = {"allow_msg_ttl", "allow_rollup_hdrs", "sealed", "no_ack", "mirror", "sources", "subject_transform"}
    watched |= {"deliver_subject", "headers_only", "backoff", "opt_start_seq", "opt_start_time"}
    return {k: (w, f) for k, (w, f) in pairs.items() if (w or f) and w != f and (w is not None or k in watched)}


def _plain(value: object) -> object:
    value = getattr(value, "value", value)
    return sorted(value) if isinstance(value, list) and all(isinstance(v, str) for v in value) else value


def _require(what: str, drift: Drift | None) -> None:
    if drift is None:
        raise LogError(f"The log has no {what}.", "It was never made, or someone deleted it.", "Run `agent0 log init`.")
    _refuse(what, drift)


def _refuse(what: str, drift: Drift) -> None:
    if not drift:
        return
    field, (expected, actual) = next(iter(drift.items()))
    fixable = field in _MUTABLE
    fix = "Run `agent0 log init` to apply your settings." if fixable else "Restore that field as the administrator."
    raise LogError(
        f"The log's {what} has drifted in {field}.", f"It is {actual!r} where {expected!r} is required.", fix
    )
