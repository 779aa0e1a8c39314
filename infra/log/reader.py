"""Reading the stream at full speed: a raw pull subscription with a callback on an ephemeral consumer without acks.

The reader alone knows its position. Whatever happens to the consumer, it is made again at the next sequence.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from nats.aio.msg import Msg
from nats.errors import Error
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from agent0.errors import LogError
from agent0.infra.log.connection import Link
from agent0.infra.log.streams import EVENTS
from agent0.infra.log.users.rights import READER_NAMES

BATCH = 256
EXPIRES_S = 30
HEARTBEAT_S = 2
SILENCE_S = 30
"""A filtered read may pass over many events, but not for so long."""
CATCH_UP_TRIES = 50
IDLE_S = 20
"""The server forgets an abandoned consumer after this long."""
_TAKEN = (10105, 10148)
"""The server's codes for a name that another consumer has."""


@dataclass(frozen=True)
class Query:
    """What to read: sequences in (after, until] on ``subjects`` (none: all). ``until`` 0 is the present end,
    and ``follow`` goes on for ever."""

    subjects: tuple[str, ...] = ()
    after: int = 0
    until: int = 0
    follow: bool = False
    headers_only: bool = False
    stream: str = EVENTS


@dataclass(frozen=True, slots=True)
class Stored:
    """One message with its stream sequence; ``count`` numbers what its consumer was sent."""

    seq: int
    count: int
    message: Msg


class GapError(LogError):
    """After the event ``after`` comes ``seq`` (0: nothing, though more is stored)."""

    def __init__(self, after: int, seq: int = 0) -> None:
        self.after, self.seq = after, seq
        why = f"After sequence {after} comes {seq}." if seq else f"Event {after + 1} is stored and cannot be read."
        super().__init__("The log has a gap.", why, "See `agent0 events verify`, and import it from an archive.")


class _LostConsumerError(Exception):
    """The consumer is gone or skipped something: make another."""


async def pull(link: Link, query: Query) -> AsyncGenerator[list[Stored], None]:
    """Chunks of what ``query`` asks for, in order, none twice.

    Raises:
        GapError: a sequence is missing or cannot be read (of the whole log only).
        LogError: the log is shorter than what was already read.
        DependencyError: the log does not answer (bounded reads only; a follower waits).
    """
    position, patience = query.after, 4
    while True:
        consumer = _Consumer(link, replace(query, after=position))
        try:
            async with aclosing(consumer.chunks()) as chunks:
                async for chunk in chunks:
                    position, patience = chunk[-1].seq, 4
                    yield chunk
            return
        except (_LostConsumerError, Error, TimeoutError) as error:
            patience -= 1
            if not query.follow and not patience:
                raise link.away("read events") from error
            await asyncio.sleep(0.2)


@dataclass(frozen=True)
class _CreatedConsumer:
    """A consumer that the server made: the messages that wait for it, and whether the server is one of a cluster."""

    name: str
    pending: int
    clustered: bool


class _Consumer:
    """One ephemeral consumer: it lives until the end of the query or until it is lost."""

    def __init__(self, link: Link, query: Query) -> None:
        self._link, self._query = link, query
        self._arrived: list[Msg] = []
        self._wake = asyncio.Event()
        self._asked = 0
        self._count = 0
        self._quota = self._last = 0
        self._silent = 0
        self._name, self._next, self._inbox = "", "", link.client.new_inbox()
        self._pace: list[str] = []
        """Where to answer that what came before has been taken: only then the server sends more."""

    async def chunks(self) -> AsyncGenerator[list[Stored], None]:
        client, generation = self._link.client, self._link.generation
        if not await self._create():
            await self._delete()
            return
        subscription = await client.subscribe(
            self._inbox, cb=self._receive, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
        self._link.watch(self._wake)
        try:
            position = self._query.after
            while True:
                await self._ask()
                for_us = self._take(position)
                if for_us:
                    position = for_us[-1].seq
                    done = self._done(for_us[-1])
                    selected = [s for s in for_us if not self._query.until or s.seq <= self._query.until]
                    if selected:
                        yield selected
                    if done:
                        return
                    continue
                await self._wait(generation)
                await self._notice_silence(position)
        finally:
            self._link.unwatch(self._wake)
            if not client.is_closed:
                await subscription.unsubscribe()
                await self._delete()

    async def _delete(self) -> None:
        """Have the server forget the consumer, so that its name is free at once."""
        if self._link.named:
            await self._link.client.publish(f"$JS.API.CONSUMER.DELETE.{self._query.stream}.{self._name}")

    async def _create(self) -> bool:
        """Make the consumer; False where a bounded query has nothing to read."""
        query = self._query
        if query.after and query.stream == EVENTS:
            await self._check_extent(query.after)
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=query.after + 1,
            ack_policy=AckPolicy.NONE,
            filter_subjects=list(query.subjects) or None,
            headers_only=query.headers_only or None,
            mem_storage=True,
            num_replicas=1,
            inactive_threshold=IDLE_S,
        )
        if self._link.sent_only:
            config.deliver_subject, config.flow_control, config.idle_heartbeat = self._inbox, True, HEARTBEAT_S
        created = await self._create_named(config)
        self._name = created.name
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{query.stream}.{self._name}"
        self._quota = created.pending
        if query.follow or not created.clustered:
            return bool(query.follow or self._quota)
        self._last = await self._newest()  # the consumer's server may be behind: only the leader knows where the end is
        return self._last > query.after

    async def _create_named(self, config: ConsumerConfig) -> _CreatedConsumer:
        """A new consumer as the server made it. Whoever may make one under any name may also change a handler's, so
        readers have names of their own, and take one that is free."""
        stream = self._query.stream
        for name in secrets.SystemRandom().sample(READER_NAMES, len(READER_NAMES)) if self._link.named else [""]:
            config.name = name or None
            body = {"stream_name": stream, "config": config.as_dict(), "action": "create"}
            subject = f"$JS.API.CONSUMER.CREATE.{stream}" + (f".{name}" if name else "")
            answer = json.loads(await self._link.request(subject, json.dumps(body).encode()))
            if answer.get("error", {}).get("err_code") not in _TAKEN:
                break
        if "error" in answer:
            raise _LostConsumerError(answer["error"].get("description", ""))
        return _CreatedConsumer(answer["name"], answer["num_pending"], "cluster" in answer)

    async def _newest(self) -> int:
        """Sequence of the newest event that is asked for; 0 where there is none."""
        if not self._query.subjects:
            return (await self._extent())[0]
        return max([await self._newest_of(subject) for subject in self._query.subjects])

    async def _newest_of(self, subject: str) -> int:
        body = json.dumps({"last_by_subj": subject}).encode()
        answer = json.loads(await self._link.request(f"$JS.API.STREAM.MSG.GET.{self._query.stream}", body))
        if answer.get("error", {}).get("code") == 404:
            return 0
        if "message" not in answer:
            raise _LostConsumerError("the server is not ready")
        return int(answer["message"]["seq"])

    async def _extent(self) -> tuple[int, bool]:
        """The stream's newest sequence, and whether the stream is replicated."""
        info = json.loads(await self._link.request(f"$JS.API.STREAM.INFO.{self._query.stream}"))
        if "state" not in info:
            raise _LostConsumerError("the server is not ready")
        return int(info["state"]["last_seq"]), bool(info.get("cluster", {}).get("replicas"))

    async def _check_extent(self, position: int) -> None:
        """Raises LogError where there is less than was already read. A new leader of a replicated log gets time to take
        in what the old one had given out."""
        for _ in range(CATCH_UP_TRIES):
            last, replicated = await self._extent()
            if last >= position:
                return
            if not replicated:
                break
            await asyncio.sleep(0.2)
        why = f"It ends at {last}, but {position} had been read: the store was truncated or replaced."
        fix = "Do not write to it. See `agent0 events verify`, and import it from an archive."
        raise LogError("The log lost events.", why, fix)

    async def _ask(self) -> None:
        """Keep two requests open, so that the server never waits for us; or answer that it may send on."""
        pace, self._pace = self._pace, []
        for reply in pace:
            await self._link.client.publish(reply)
        while not self._link.sent_only and self._asked + len(self._arrived) <= BATCH:
            body = {"batch": BATCH, "expires": EXPIRES_S * 10**9, "idle_heartbeat": int(HEARTBEAT_S * 10**9)}
            await self._link.client.publish(self._next, json.dumps(body).encode(), reply=self._inbox)
            self._asked += BATCH

    async def _receive(self, message: Msg) -> None:
        self._arrived.append(message)
        self._wake.set()

    async def _wait(self, generation: int) -> None:
        """Until something arrives. Silence, or a reconnection (consumers live in the server's memory): lost."""
        try:
            async with asyncio.timeout(HEARTBEAT_S * 2.5):
                await self._wake.wait()
        except TimeoutError as error:
            raise _LostConsumerError("no heartbeat") from error
        if self._link.generation != generation:
            raise _LostConsumerError("reconnected")
        self._wake.clear()

    async def _notice_silence(self, position: int) -> None:
        """A server that comes upon a block it cannot read says nothing, and goes on sending heartbeats."""
        if self._arrived and not all(_is_beat(message) for message in self._arrived):
            self._silent = 0
            return
        self._silent += 1
        if self._query.follow:
            return
        if self._gapless:
            if not await self._is_readable(position + 1):
                raise GapError(position)
        elif self._silent > SILENCE_S / HEARTBEAT_S:
            raise _LostConsumerError("silence")

    async def _is_readable(self, seq: int) -> bool:
        body = json.dumps({"seq": seq}).encode()
        answer = json.loads(await self._link.request(f"$JS.API.STREAM.MSG.GET.{self._query.stream}", body))
        if answer.get("error", {}).get("code") == 503:
            raise _LostConsumerError("the server is not ready")
        return "error" not in answer

    @property
    def _gapless(self) -> bool:
        return not self._query.subjects and self._query.stream == EVENTS

    def _take(self, position: int) -> list[Stored]:
        arrived, self._arrived = self._arrived, []
        self._wake.clear()
        taken: list[Stored] = []
        for n, message in enumerate(arrived):
            if not message.reply.startswith("$JS.ACK"):
                self._status(message)
                continue
            stored = _positioned(message)
            if stored.count != self._count + 1:
                raise _LostConsumerError("a message was lost on the way")
            if self._gapless and stored.seq != position + 1:
                if not taken:
                    raise GapError(position, stored.seq)
                self._arrived = arrived[n:] + self._arrived  # what came before the gap is given out first
                break
            self._asked -= 1
            self._count, position = stored.count, stored.seq
            taken.append(stored)
        return taken

    def _status(self, message: Msg) -> None:
        """Heartbeats may ask for an answer; an expired request is asked again; everything else ends this consumer."""
        headers: dict[str, str] = message.headers or {}
        match headers.get("Status", ""):
            case "100":
                if reply := message.reply or headers.get("Nats-Consumer-Stalled", ""):
                    self._pace.append(reply)
            case "408":
                self._asked -= int(headers.get("Nats-Pending-Messages", BATCH))
            case status:
                raise _LostConsumerError(f"{status} {headers.get('Description', '')}")

    def _done(self, last: Stored) -> bool:
        if self._query.follow:
            return False
        if self._last:
            return last.seq >= min(self._last, self._query.until or self._last)
        return last.count >= self._quota or bool(self._query.until and last.seq >= self._query.until)


def _is_beat(message: Msg) -> bool:
    return (message.headers or {}).get("Status") == "100"


def _positioned(message: Msg) -> Stored:
    """Positions from the reply subject ``$JS.ACK.[domain.account.]stream.consumer.delivered.seq.count.time.left``."""
    tokens = message.reply.split(".")
    if len(tokens) > 9:
        tokens = tokens[2:]
    return Stored(int(tokens[5]), int(tokens[6]), message)
