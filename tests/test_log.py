"""Appends happen once, whole and durably; reads are complete, ordered and notice what is missing."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from nats.errors import FlushTimeoutError

from agent0.errors import DependencyError, LogError, NotFoundError
from agent0.events import Recorded
from agent0.events.alarms import AlarmRaised, AlarmResolved
from agent0.events.base import record
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server, open_server
from agent0.settings import NatsSettings
from tests.processes import halt

WINDOW_S = 1.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def nats_settings() -> NatsSettings:
    return NatsSettings(duplicate_window_s=WINDOW_S, max_bytes=4 << 20)


def raised(name: str, run: str = "r1", size: int = 1) -> Recorded:
    return record(AlarmRaised(alarm=name, severity="info", message="m" * size), run=run, time=NOW)


def resolved(name: str, run: str = "r1") -> Recorded:
    return record(AlarmResolved(alarm=name), run=run, time=NOW)


async def names(log: Log, *args: object, **kwargs: object) -> list[str]:
    return [r.event.alarm async for r in log.read(*args, **kwargs)]  # type: ignore[arg-type, attr-defined]


class Proxy:
    """Stands between client and server and can swallow what the server says."""

    def __init__(self, port: int) -> None:
        self._port, self.mute = port, False
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> "Proxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut()
        self._server.close()
        await self._server.wait_closed()

    def cut(self) -> None:
        """End every connection."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, far_writer]
        await asyncio.gather(self._pump(reader, far_writer, False), self._pump(far_reader, writer, True))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, mutable: bool) -> None:
        try:
            while data := await source.read(65536):
                if sink.is_closing():  # it was cut meanwhile
                    break
                if not (mutable and self.mute):
                    sink.write(data)
                    await sink.drain()
        except ConnectionError:
            pass
        finally:
            sink.close()


@pytest_asyncio.fixture
async def proxy(nats_server: Server) -> AsyncIterator[Proxy]:
    async with Proxy(int(nats_server.url.rpartition(":")[2])) as made:
        yield made


# --- appending --------------------------------------------------------------------------------------------------------


async def test_sequences_are_the_positions_and_reading_gives_back_what_was_written(log: Log) -> None:
    events = [raised("a"), resolved("b"), raised("c", "r2")]
    assert await log.append(events[:1]) == [1]
    assert await log.append(events[1:]) == [2, 3]
    found = [r async for r in log.read()]
    assert [(r.seq, r.id, r.subject, r.event) for r in found] == [
        (n, e.id, e.subject, e.event) for n, e in enumerate(events, 1)
    ]
    assert await log.append([]) == []


async def test_appending_again_changes_nothing(log: Log) -> None:
    a, b, c = raised("a"), raised("b"), raised("c")
    assert await log.append([a]) == await log.append([a]) == [1]
    assert await log.append([b, a, c]) == [2, 1, 3]
    assert await log.append([a, b, c]) == [1, 2, 3]
    assert (await log.info()).last_seq == 3


async def test_more_than_a_batch_goes_in_parts(log: Log) -> None:
    assert await log.append([raised(f"a{n}") for n in range(2300)]) == list(range(1, 2301))


async def test_an_id_twice_or_a_body_too_large_is_refused_before_anything_is_stored(log: Log) -> None:
    a = raised("a")
    with pytest.raises(LogError, match="twice"):
        await log.append([a, raised("b"), a])
    with pytest.raises(LogError, match=r"too large.*artifact"):
        await log.append([a, raised("b", size=1 << 20)])
    assert await log.last_seq() == 0


@pytest.mark.parametrize("number", [1, 3])
async def test_a_lost_ack_does_not_store_twice(log: Log, nats_server: Server, proxy: Proxy, number: int) -> None:
    await log.append([raised("before")])
    access = {"user": "app", "password": nats_server.password("app")}
    far = Server(NatsSettings(url=proxy.url, **access))  # type: ignore[arg-type]
    async with await Log.connect(far) as distant:
        proxy.mute = True
        events = [raised(f"a{n}") for n in range(number)]
        appending = asyncio.create_task(distant.append(events))
        async with asyncio.timeout(10):
            while await log.last_seq() < 1 + number:
                await asyncio.sleep(0.01)
        await asyncio.sleep(WINDOW_S * 1.2)  # the server has forgotten the ids by now
        assert not appending.done()
        proxy.mute = False
        proxy.cut()
        assert await appending == list(range(2, 2 + number))
    assert (await log.info()).last_seq == 1 + number


async def test_of_writers_that_saw_the_same_newest_event_of_a_run_one_is_stored(log: Log) -> None:
    """Whatever their subjects are; events of other runs do not count."""
    (seen,) = await log.append([raised("a")])
    await log.append([raised("x", "r2")])
    asked = [make(str(n)) for n in range(8) for make in (raised, resolved)]
    found = await asyncio.gather(*(log.append_unchanged(one, seen) for one in asked))
    (won,) = [seq for seq in found if seq]
    assert won == await log.last_seq("r1") == 3 and await names(log, "r1") == ["a", asked[found.index(won)].event.alarm]  # type: ignore[attr-defined]
    assert await log.append_unchanged(raised("b"), won) == 4
    assert await log.append_unchanged(raised("new", "r3"), 0) == 5
    assert await log.append_unchanged(raised("new again", "r3"), 0) == 0


async def test_a_full_log_refuses_whole_batches_and_keeps_its_history(log: Log) -> None:
    large = [raised(f"a{n}", size=300_000) for n in range(30)]
    await log.append(large[:8])
    with pytest.raises(DependencyError, match=r"log is not available.*maximum bytes.*max_bytes"):
        await log.append(large[8:])
    with pytest.raises(DependencyError):
        for event in large:
            await log.append([event])
    stored = await names(log)
    assert stored == [f"a{n}" for n in range(len(stored))] and 8 <= len(stored) < 30


async def test_without_a_server_appending_says_so_after_its_patience(
    log: Log, nats_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.patience_s = 0
    monkeypatch.setattr("agent0.infra.log.event_log.ANSWER_S", 0.3)
    await nats_server.stop()
    event = raised("a")
    with pytest.raises(DependencyError, match="nothing is lost"):
        async with asyncio.timeout(20):
            await log.append([event])
    await nats_server.start()
    log.patience_s = 20
    assert await log.append([event]) == [1]


# --- reading ----------------------------------------------------------------------------------------------------------


async def test_a_log_that_answers_after_somebody_gave_up_is_read_on(log: Log, nats_server: Server) -> None:
    halt(nats_server.pid)
    try:
        with pytest.raises(FlushTimeoutError):
            await log.client.flush(0.05)  # type: ignore[arg-type]  # any number of seconds
    finally:
        os.kill(nats_server.pid, signal.SIGCONT)
    await log.append([raised("a")])
    assert await names(log) == ["a"]


async def test_reads_are_filtered_and_bounded(log: Log) -> None:
    await log.append(
        [(raised if n % 2 else resolved)(f"a{n}", f"r{n % 3}") for n in range(1, 61)],
    )
    everything = [r async for r in log.read()]
    for run in ("", "r1"):
        for types in ((), ("AlarmRaised",), ("AlarmRaised", "AlarmResolved"), ("LogSealed",)):
            for after, until in ((0, 0), (10, 0), (10, 20), (59, 60), (60, 0), (60, 61), (0, 1)):
                expected = [
                    r.seq
                    for r in everything
                    if after < r.seq <= (until or 60) and (not run or r.run == run) and (not types or r.type in types)
                ]
                assert [r.seq async for r in log.read(run, types, after, until)] == expected
    assert await log.last_seq("r1") == 58 and await log.last_seq("nobody") == 0
    assert (await log.message(7)).event == everything[6].event
    with pytest.raises(NotFoundError):
        await log.message(61)


async def test_a_bounded_read_ends_although_others_write(log: Log) -> None:
    await log.append([raised(f"a{n}") for n in range(500)])

    async def write() -> None:
        while True:
            await log.append([raised("more")])

    writing = asyncio.create_task(write())
    async with asyncio.timeout(20):
        found = await names(log)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    assert found[:500] == [f"a{n}" for n in range(500)]


async def test_bodies_come_in_chunks_without_a_gap(log: Log) -> None:
    await log.append([raised(f"a{n}") for n in range(3000)])
    chunks = [chunk async for chunk in log.read_bodies(after=100, until=2900)]
    assert [seq for chunk in chunks for seq, _ in chunk] == list(range(101, 2901))
    assert b'"alarm":"a100"' in chunks[0][0][1]


async def test_a_tail_follows_what_is_written_later_and_through_a_restart(log: Log, nats_server: Server) -> None:
    await log.append([raised("a")])
    async with aclosing(log.tail(0, "r1", ["AlarmRaised"])) as tail:  # type: ignore[type-var]
        assert (await anext(tail)).seq == 1
        await log.append([resolved("a"), raised("other", "r2"), raised("b")])
        assert (await anext(tail)).seq == 4
        await nats_server.stop()
        await nats_server.start()
        await log.append([raised("c")])
        async with asyncio.timeout(20):
            assert (await anext(tail)).event.alarm == "c"  # type: ignore[attr-defined]


@pytest.mark.parametrize("run", ["*", "a.b", "../x", ">", "a b", "x" * 65])
async def test_ids_that_could_be_wildcards_or_paths_are_refused(log: Log, run: str) -> None:
    with pytest.raises(NotFoundError, match="no valid id"):
        await names(log, run)


async def test_an_event_of_a_newer_version_says_so(log: Log) -> None:
    body = raised("a").to_json().replace(b'"type":"AlarmRaised"', b'"type":"FromTheFuture"')
    await log.client.jetstream().publish("a0.ev.r1.-.-.FromTheFuture", body)
    with pytest.raises(LogError, match=r"Event 1 cannot be read.*FromTheFuture.*newer"):
        await names(log)


# --- damage -----------------------------------------------------------------------------------------------------------


async def restarted(tmp_path: Path, server: Server, damage: str) -> Server:
    """Stop the server, damage its store, start it again."""
    await server.stop()
    [block] = tmp_path.rglob("streams/A0_EV/msgs/*.blk")
    data = bytearray(block.read_bytes())
    data[data.index(b"needle")] ^= 0xFF
    block.write_bytes(data)
    if damage == "truncated":
        (block.parent / "index.db").unlink()
    return await open_server(tmp_path, NatsSettings())


@pytest.mark.parametrize("damage", ["gap", "truncated"])
async def test_damage_that_the_server_keeps_silent_about_is_noticed(
    log: Log, nats_server: Server, tmp_path: Path, damage: str
) -> None:
    await log.append([raised("needle" if n == 50 else f"a{n}") for n in range(100)])
    await log.close()
    server = await restarted(tmp_path, nats_server, damage)
    try:
        async with await Log.connect(server) as again:
            with pytest.raises(LogError, match="gap" if damage == "gap" else "ends at 50, but 100 had been read"):
                await names(again, after=0 if damage == "gap" else 100)
    finally:
        await server.stop()
