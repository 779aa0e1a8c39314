"""Bodies that were stored once are stored again, byte for byte and under the same numbers; and a stream makes way for
the one that goes on from it."""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from uuid import uuid4

from nats.errors import Error
from nats.js.errors import NotFoundError as NoStreamError

from agent0.errors import LogError
from agent0.events import event_types
from agent0.events.base import TOKEN, TRACE_HEADER, traceparent
from agent0.infra.log.connection import ANSWER_S, Link, connect
from agent0.infra.log.nats_server import Server
from agent0.infra.log.publishing import PublishAnswer
from agent0.infra.log.streams import EVENTS, Reactor, Topology, init

EVENTS_AT_ONCE, BYTES_AT_ONCE = 1000, 8 << 20
_DUPLICATE = 10201
_ID = re.compile(r"[!-~]{1,200}")
"""It goes into a header, which must stay one line."""
Bodies = list[tuple[int, bytes]]


def place_of(seq: int, body: bytes) -> tuple[str, str]:
    """Subject and id of a stored body.

    Raises:
        LogError: it is no event that this Agent0 knows.
    """
    try:
        raw = json.loads(body)
        kind, tokens = raw["type"], (raw["run"], raw["task"], raw["attempt"])
        if kind not in event_types():
            why, fix = f"It is a {kind!r}.", "Use the Agent0 that wrote it, or a newer one."
            raise LogError(f"This Agent0 does not know event {seq}.", why[:200], fix)
        if not all(TOKEN.fullmatch(token) for token in tokens):
            raise ValueError("an id that is none")
        if not _ID.fullmatch(raw["id"]):
            raise ValueError("an id that is none")
        return f"a0.ev.{'.'.join(tokens)}.{kind}", raw["id"]
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise LogError(f"Event {seq} cannot be read.", f"{error!r}."[:300]) from error


async def restore(server: Server, chunks: Iterable[Bodies]) -> int:
    """Store ``chunks`` in the empty event stream of ``server``; how many events.

    Raises:
        LogError: an event did not get its number.
        DependencyError: no answer, or no space.
    """
    link, count = await connect(server, "app"), 0
    try:
        for chunk in chunks:
            for part in _parts(chunk):
                await _store(link, part)
                count += len(part)
    except (Error, TimeoutError) as error:
        raise link.away("store events") from error
    finally:
        await link.close()
    return count


def _parts(chunk: Bodies) -> Iterator[Bodies]:
    part: Bodies = []
    size = 0
    for stored in chunk:
        if part and (len(part) == EVENTS_AT_ONCE or size + len(stored[1]) > BYTES_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(stored)
        size += len(stored[1])
    if part:
        yield part


async def _store(link: Link, part: Bodies) -> None:
    batch, last = uuid4().hex, len(part)
    async with asyncio.timeout(ANSWER_S):
        await link.ready()
    for number, (seq, body) in enumerate(part, 1):
        subject, id = place_of(seq, body)
        headers = {**_marks(subject, id), "Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
        if number < last:
            await link.client.publish(subject, body, headers=headers)
            continue
        commit = headers | {"Nats-Batch-Commit": "1"} if last > 1 else _marks(subject, id)
        answer = PublishAnswer.model_validate_json(
            await link.request(subject, body, headers=commit, timeout_s=4 * ANSWER_S)
        )
    if answer.duplicate or (answer.error and answer.error.err_code == _DUPLICATE):
        await _store_one_by_one(link, part)
    else:
        _require(answer, part[-1][0])


def _marks(subject: str, id: str) -> dict[str, str]:
    _, _, run, task, attempt, _ = subject.split(".")
    return {"Nats-Msg-Id": id, TRACE_HEADER: traceparent(run, task, attempt)}


async def _store_one_by_one(link: Link, part: Bodies) -> None:
    """An id that is in the log twice, as it was: the server refuses it in one batch, and within its window."""
    for seq, body in part:
        subject, id = place_of(seq, body)
        answer = PublishAnswer.model_validate_json(await link.request(subject, body, headers=_marks(subject, id)))
        if answer.duplicate:
            answer = PublishAnswer.model_validate_json(await link.request(subject, body))
        _require(answer, seq)


def _require(answer: PublishAnswer, seq: int) -> None:
    if answer.error:
        why = f"{answer.error.description}."
        raise LogError(f"Event {seq} was refused by the server.", why, "Raise nats.max_bytes where it says so.")
    if answer.seq != seq:
        raise LogError(f"Event {seq} became {answer.seq}.", "Something else writes to this log.", "Stop that first.")


async def renew(server: Server, topology: Topology, handlers: Iterable[Reactor]) -> None:
    """Delete the event stream and make one whose numbers begin at ``topology.first_seq``. What was in it is safe."""
    link = await connect(server, "admin")
    try:
        await link.client.jsm().delete_stream(EVENTS)
    except NoStreamError:
        pass  # an earlier try came so far
    except (Error, TimeoutError) as error:
        raise link.away("renew the log") from error
    finally:
        await link.close()
    await init(server, replace(topology, has_events=False), handlers)
