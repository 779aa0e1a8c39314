"""The log: the one place that appends events and reads them back.

An append is durable (fsynced) when it returns, happens once however often it is tried, and lands whole or not at all.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any, Self
from uuid import uuid4

from nats.aio.client import Client
from nats.errors import Error
from nats.js.errors import NotFoundError as NoSuchMessageError

from agent0.errors import DependencyError, LogError, NotFoundError
from agent0.events.base import TOKEN, Recorded
from agent0.infra.log.connection import ANSWER_S, Link, apart, connect
from agent0.infra.log.decoder import Decoder
from agent0.infra.log.nats_server import Role, Server
from agent0.infra.log.publishing import (
    NO_STREAM,
    AgainError,
    AppendQueue,
    DuplicateError,
    PublishAnswer,
    ServerRefusal,
    body_of,
    marks,
)
from agent0.infra.log.reader import Query, Stored, pull
from agent0.infra.log.set_aside import SUBJECT as ASIDES
from agent0.infra.log.set_aside import Asides, Read, decoded_body, read_asides, visible_body
from agent0.infra.log.streams import EVENTS

BATCH = 1000
"""Messages of one atomic batch: the server's limit."""

PATIENCE_S = 15.0
CLUSTER_ANSWER_S = 2.0
"""A cluster that lost a leader does not say so. Whoever asks again sooner finds the next one sooner."""


@dataclass(frozen=True)
class LogInfo:
    """What the stream says of itself. ``created`` changes when the log is another log."""

    first_seq: int
    last_seq: int
    bytes: int
    created: str
    max_bytes: int = 0
    lost: int = 0
    """Events between the first and the last that the server knows to be gone."""
    time: datetime | None = field(default=None, compare=False)
    """When the server said so, by its own clock; None where it says none."""


class NoLogError(LogError):
    """The streams of the log do not exist yet; ``agent0 log init`` makes them."""


class Log:
    """A connection that appends and reads. Plays ``agent0.ports.storage.History``."""

    def __init__(self, link: Link, server: Server, role: Role) -> None:
        self._link, self.server, self.role = link, server, role
        self._floor = 0
        self._decoder = Decoder()
        self.queue = AppendQueue()
        """Appends that nobody waits for. Any other ``append`` waits for those that were put in before it."""
        self.wrote = False
        """Whether anything but a seal was appended."""
        self.before_append: Callable[[], Awaitable[None]] | None = None
        """Awaited before events are sent: what they name must be where others find it."""
        self.patience_s = PATIENCE_S
        self._answer_s = ANSWER_S if server.folder else CLUSTER_ANSWER_S
        self.asides: Asides = {}
        self.archived: Mapping[str, str] = {}
        """Runs whose events are no longer here, and where they are."""

    @classmethod
    async def connect(cls, server: Server, role: Role = "app") -> Self:
        """Connect as ``role`` (app: append and read; reader: read only).

        Raises:
            DependencyError: the server does not answer.
            AuthError: the credentials are refused.
            LogError: the log was never made.
        """
        log = cls(await connect(server, role), server, role)
        try:
            log._floor = await log.last_seq()
            if (await log.newest(ASIDES))[0]:
                log.asides = await read_asides(log._link)
        except BaseException:
            await log.close()
            raise
        return log

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Do what is queued, flush and disconnect."""
        await self.queue.close(self.patience_s)
        await self._link.close()

    @property
    def client(self) -> Client:
        """The raw connection, for checks of the topology."""
        return self._link.client

    # --- appending ------------------------------------------------------------------------------------------------

    async def append(self, recorded: Sequence[Recorded], *, queued: bool = False) -> list[int]:
        """Store events durably; their sequences, in order. Up to 1,000 land all or none; more go in such parts.

        Storing the same ids again changes nothing and gives the sequences they have. ``queued``: by a job of ``queue``.

        Raises:
            DependencyError: no answer, or no space. It may have been stored: append again, or look before you do.
            LogError: an event is too large, or an id occurs twice in ``recorded``.
            AuthError: this role may not append.
        """
        if len({r.id for r in recorded}) < len(recorded):
            raise LogError("An id occurs twice in one append.", "Ids name facts.", "Give each event its own id.")
        if not queued:
            await self.queue.join()
        sequences: list[int] = []
        for start in range(0, len(recorded), BATCH):
            sequences += await self._append_part(recorded[start : start + BATCH])
        return sequences

    async def append_behind(self, events: Sequence[Recorded], last: int, among: str) -> int:
        """Store ``events``, all or none, where the newest event of the subjects ``among``, to which the first of them
        belongs, still stands at ``last`` (0: there is none); the sequence of the last, 0 where another one came first,
        or they themselves before.

        Raises:
            DependencyError: no answer, or no space. They may have been stored: look.
        """
        try:
            sent = await self._send(events, {r.id: body_of(r) for r in events}, {events[0].id: last}, among)
            return sent[events[-1].id]
        except DuplicateError:
            return 0
        except (Error, TimeoutError, AgainError) as error:
            raise self._link.away("append") from error

    async def append_unchanged(self, recorded: Recorded, last: int) -> int:
        """As ``append_behind``: where the newest event of its run still stands at ``last``."""
        return await self.append_behind([recorded], last, f"a0.ev.{_token(recorded.run)}.>")

    async def _append_part(self, part: Sequence[Recorded]) -> list[int]:
        bodies = {r.id: body_of(r) for r in part}
        self.wrote = True
        floor, deadline = self._floor, monotonic() + self.patience_s
        stored: dict[str, int] = {}
        while missing := [r for r in part if r.id not in stored]:
            try:
                stored |= await self._send(missing, bodies)
            except DuplicateError:
                # Within the server's window, so stored by us, by another process or by an earlier life of this one.
                stored |= await self._require_stored(missing)
            except (Error, TimeoutError, AgainError) as error:
                if self._link.denied or monotonic() > deadline:
                    raise self._link.away("append") from error
                await asyncio.sleep(0.2)
                stored |= await self._landed(missing, floor)
        self._floor = max(floor, *stored.values())
        return [stored[r.id] for r in part]

    async def _send(
        self,
        events: Sequence[Recorded],
        bodies: Mapping[str, bytes],
        newest: Mapping[str, int] | None = None,
        among: str = "",
    ) -> dict[str, int]:
        """One plain publish or one atomic batch; id -> sequence."""
        if self.before_append is not None:
            await self.before_append()
        client, batch = self._link.client, uuid4().hex
        async with asyncio.timeout(ANSWER_S):
            await self._link.ready()
        for n, r in enumerate(events[:-1], 1):
            position = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(n)}
            await client.publish(r.subject, bodies[r.id], headers=marks(r, newest, among) | position)
        last = events[-1]
        headers = {**marks(last, newest, among), "Nats-Expected-Stream": EVENTS}
        if len(events) > 1:
            headers |= {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(len(events)), "Nats-Batch-Commit": "1"}
            headers.pop("Nats-Expected-Stream")
        answer = await self._link.request(last.subject, bodies[last.id], self._answer_s, headers)
        published = PublishAnswer.model_validate_json(answer)
        if newest and published.duplicate:
            raise DuplicateError
        seq = published.stored_at()
        return {r.id: seq - len(events) + n for n, r in enumerate(events, 1)}

    async def _landed(self, events: Sequence[Recorded], floor: int) -> dict[str, int]:
        """After an answer was lost: what is there nevertheless. Nothing, where that cannot be told yet: then the server
        will say that it is a duplicate."""
        try:
            async with asyncio.timeout(self._answer_s):
                return await self._stored(events, floor)
        except (DependencyError, TimeoutError):
            return {}

    async def _require_stored(self, events: Sequence[Recorded]) -> dict[str, int]:
        if stored := await self._stored(events, 0):
            return stored
        why = "The server calls an id a duplicate that the log does not hold."
        raise LogError("An append was refused.", why, "Was the store altered? Run `agent0 doctor`.")

    async def _stored(self, events: Sequence[Recorded], after: int) -> dict[str, int]:
        """Which of ``events`` the log holds after ``after``: id -> sequence. Reads headers only."""
        missing, stored = {r.id for r in events}, dict[str, int]()
        subjects = tuple(sorted({f"a0.ev.{r.run}.>" for r in events}))
        async with aclosing(pull(self._link, Query(subjects, after, headers_only=True))) as chunks:
            async for chunk in chunks:
                ids = (((s.message.headers or {}).get("Nats-Msg-Id", ""), s.seq) for s in chunk)
                stored |= {id: seq for id, seq in ids if id in missing}
                if len(stored) == len(missing):
                    break
        return stored

    # --- reading --------------------------------------------------------------------------------------------------

    async def read(
        self, run: str = "", types: Sequence[str] = (), after: int = 0, until: int = 0
    ) -> AsyncIterator[Recorded]:
        """Events with after < seq <= until (until 0: to the present end) of ``run`` and ``types`` (none named: all).

        Raises:
            LogError: a gap, a truncated log, or a body this Agent0 cannot read.
            NotFoundError: the run's events are in an archive.
            DependencyError: the log does not answer.
        """
        once = partial(self._decoder.decode, keep=False)  # does not drive out what was just stored
        async for stored in self._messages(Query(self._here(run, types), after, until)):
            yield self._decoded(stored, once)

    async def tail(self, after: int, run: str = "", types: Sequence[str] = ()) -> AsyncIterator[Recorded]:
        """The same without an end: waits for what comes, through reconnections and restarts of the server."""
        async for stored in self._messages(Query(self._here(run, types), after, follow=True)):
            yield self._decoded(stored, self.decode)

    def _decoded(self, stored: Stored, read: Read) -> Recorded:
        return decoded_body(stored.message.data, stored.seq, self.asides, read, stored.message.subject)

    def decode(self, seq: int, body: bytes) -> Recorded:
        """The event in the stored ``body`` at ``seq``, remembered for others of this process that meet it.

        Raises:
            ValueError: it cannot be read.
        """
        return self._decoder.decode(seq, body)

    async def read_stored(
        self, after: int = 0, until: int = 0, *, follow: bool = False
    ) -> AsyncIterator[list[tuple[int, bytes, str]]]:
        """Chunks of (sequence, stored body, the subject that it was stored under) of the whole log, undecoded: the fast
        path of projections. What was set aside has an empty subject.

        Raises:
            LogError: a gap or a truncated log.
            DependencyError: the log does not answer (not when following).
        """
        async with aclosing(pull(self._link, Query((), after, until, follow))) as chunks:
            async for chunk in chunks:
                bodies = ((s, visible_body(self.asides, s.seq, s.message.data, s.message.subject)) for s in chunk)
                yield [(s.seq, body, s.message.subject if body == s.message.data else "") for s, body in bodies]

    async def read_bodies(self, after: int = 0, until: int = 0) -> AsyncIterator[list[tuple[int, bytes]]]:
        """The same without subjects."""
        async with aclosing(self.read_stored(after, until)) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                yield [(seq, body) for seq, body, _ in chunk]

    async def message(self, seq: int) -> Recorded:
        """The event at ``seq``.

        Raises:
            NotFoundError: there is none. LogError: it cannot be read.
        """
        body, subject = await self._at(seq)
        return decoded_body(body, seq, self.asides, subject=subject)

    async def body(self, seq: int) -> bytes:
        """The stored body at ``seq``.

        Raises:
            NotFoundError: there is none, or it cannot be read.
        """
        body, subject = await self._at(seq)
        return visible_body(self.asides, seq, body, subject)

    async def _at(self, seq: int) -> tuple[bytes, str]:
        try:
            raw = await apart(self._link.client.jsm().get_msg(EVENTS, seq))
        except NoSuchMessageError as error:
            fix = "Where it should have one: agent0 events verify"
            raise NotFoundError(f"The log has no event {seq}.", fix=fix) from error
        except (Error, TimeoutError) as error:
            raise self._link.away("read an event") from error
        return raw.data or b"", raw.subject or ""

    async def newest(self, subject: str) -> tuple[int, bytes]:
        """Sequence and body of the newest event of ``subject``; (0, nothing) where there is none."""
        return await self._of(subject)

    async def next(self, subject: str, after: int) -> tuple[int, bytes]:
        """Sequence and body of the first event of ``subject`` after ``after``, without a consumer; (0, nothing) where
        there is none."""
        return await self._of(subject, seq=after + 1, next=True)

    async def _of(self, subject: str, **options: Any) -> tuple[int, bytes]:
        try:
            raw = await apart(self._link.client.jsm().get_msg(EVENTS, subject=subject, **options))
        except NoSuchMessageError:
            return 0, b""
        except (Error, TimeoutError) as error:
            raise self._link.away("read an event") from error
        return raw.seq or 0, raw.data or b""

    async def last_seq(self, run: str = "") -> int:
        """Sequence of the newest event, of ``run`` where named; 0 where there is none."""
        if not run:
            return (await self.info()).last_seq
        return (await self.newest(self._here(run)[0]))[0]

    async def info(self) -> LogInfo:
        """Extent and identity of the log.

        Raises:
            NoLogError: it was never made.
            DependencyError: no answer.
        """
        request = f"$JS.API.STREAM.INFO.{EVENTS}"
        try:
            answer = json.loads(await self._link.request(request))
        except (Error, TimeoutError) as error:
            raise self._link.away("ask for the log's extent") from error
        if refusal := answer.get("error"):
            raise self._refused(ServerRefusal.model_validate(refusal))
        state = answer["state"]
        first, last, most = state["first_seq"], state["last_seq"], answer["config"].get("max_bytes", 0)
        lost = last - first + 1 - state["messages"] if last >= first else 0
        at = datetime.fromisoformat(answer["ts"]) if answer.get("ts") else None
        return LogInfo(first, last, state["bytes"], answer["created"], most, lost, at)

    def _refused(self, refusal: ServerRefusal) -> LogError:
        if refusal.err_code != NO_STREAM:
            why = f"The server says: {refusal.description}."
            return LogError("The log is refused.", why, "Run `agent0 doctor`.")
        begin = "" if self.server.folder is None else ", or start a run: agent0 run start"
        return NoLogError("There is no log yet.", fix=f"Run `agent0 log init`{begin}.")

    def _here(self, run: str, types: Sequence[str] = ()) -> tuple[str, ...]:
        """Subjects of ``run``, whose events must be in the log."""
        if run in self.archived:
            where = self.archived[run]
            fix = f"Import it into a data folder of its own: AGENT0_HOME=… agent0 events import {where}"
            raise NotFoundError(f"The events of run {run} are in an archive.", f"It is at {where}.", fix)
        return _subjects(run, types)

    async def _messages(self, query: Query) -> AsyncIterator[Stored]:
        async with aclosing(pull(self._link, query)) as chunks:
            async for chunk in chunks:
                for stored in chunk:
                    yield stored


def _subjects(run: str, types: Iterable[str]) -> tuple[str, ...]:
    named = [f"a0.ev.{_token(run) if run else '*'}.*.*.{_token(kind)}" for kind in sorted(set(types))]
    if not named and run:
        named = [f"a0.ev.{_token(run)}.>"]
    return tuple(named)


def _token(text: str) -> str:
    if not TOKEN.fullmatch(text):
        raise NotFoundError(f"{text!r} is no valid id.", "Ids are letters, digits, '_' and '-', at most 64.")
    return text
