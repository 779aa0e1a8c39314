"""Streams, consumers and roles of the log: made once, drift refused, and each role may do no more than it must."""

import asyncio
import contextlib
import json
from datetime import UTC, datetime

import nats
import pytest
from nats.js.errors import APIError

from agent0.errors import AuthError, LogError
from agent0.events import Recorded
from agent0.events.alarms import AlarmRaised
from agent0.events.base import record
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server
from agent0.infra.log.server_folder import provisioning
from agent0.infra.log.streams import Topology, check, check_durables, init
from agent0.infra.log.users.rights import READER_NAMES
from agent0.settings import HandlerSettings, NatsSettings


def an_event(n: int) -> Recorded:
    return record(
        AlarmRaised(alarm=f"a{n}", severity="info", message="m"), run="r1", time=datetime(2026, 1, 1, tzinfo=UTC)
    )


class Toy:
    """What provisioning needs of a handler."""

    def __init__(self, name: str = "toy", events: tuple[str, ...] = ("AlarmRaised",), in_flight: int = 4) -> None:
        self.name, self.events, self.in_flight = name, events, in_flight


async def test_provisioning_twice_changes_nothing_and_limits_can_be_changed(nats_server: Server) -> None:
    before = Topology(NatsSettings(), HandlerSettings())
    for _ in range(2):
        await init(nats_server, before, [Toy()])
    after = Topology(NatsSettings(max_bytes=1 << 30), HandlerSettings(ack_wait_s=5, max_deliver=3, in_flight=7))
    async with await Log.connect(nats_server) as log:
        with pytest.raises(LogError, match=r"drifted in max_bytes.*agent0 log init"):
            await check(log.client, after, [Toy()])
        await init(nats_server, after, [Toy()])
        await check(log.client, after, [Toy()])


async def test_drift_is_refused_by_the_name_of_the_field(log: Log, nats_server: Server) -> None:
    topology = Topology(NatsSettings(), HandlerSettings())
    await init(nats_server, topology, [Toy(), Toy("single", ("AlarmResolved",), 1)])
    with pytest.raises(LogError, match="has no consumer other"):
        await check(log.client, topology, [Toy("other")])
    with pytest.raises(LogError, match="consumer toy has drifted in filter_subjects"):
        await check(log.client, topology, [Toy(events=("RunPaused",))])
    with pytest.raises(LogError, match="duplicate_window"):
        await init(nats_server, Topology(NatsSettings(duplicate_window_s=1), HandlerSettings()), ())
    async with await nats.connect(**nats_server.options("admin")) as admin:
        config = (await admin.jsm().stream_info("A0_EV")).config
        await admin.jsm().update_stream(config, max_age=3600)
        with pytest.raises(LogError, match=r"stream A0_EV has drifted in max_age.*3600"):
            await check(log.client, topology, ())
        with pytest.raises(APIError):
            await admin.jsm().purge_stream("A0_EV")


async def test_what_is_missing_is_made_by_several_at_once_and_nothing_is_changed(nats_server: Server) -> None:
    before, after = (Topology(NatsSettings(), HandlerSettings(ack_wait_s=seconds)) for seconds in (30, 5))
    toys = [Toy(f"toy{n}") for n in range(8)]
    await asyncio.gather(*(init(nats_server, before, toys, change=False) for _ in range(4)))
    await init(nats_server, after, [*toys, Toy("added")], change=False)
    async with await Log.connect(nats_server) as log:
        await check(log.client, before, toys)
        await check_durables(log.client, Topology(NatsSettings(), HandlerSettings(ack_wait_s=5)), [Toy("added")])
        with pytest.raises(LogError, match="drifted in ack_wait"):
            await check_durables(log.client, after, toys)


async def test_one_process_at_a_time_makes_the_log(nats_server: Server) -> None:
    async with provisioning(nats_server.folder):
        waiting = asyncio.create_task(init(nats_server, Topology(NatsSettings(), HandlerSettings()), [Toy()]))
        async with await nats.connect(**nats_server.options("admin")) as admin:
            await asyncio.wait([waiting], timeout=0.3)
            assert not waiting.done() and not await admin.jsm().streams_info()
    await waiting


@pytest.mark.parametrize("role", ["app", "reader"])
async def test_only_the_administrator_can_take_away(log: Log, nats_server: Server, role: str) -> None:
    await init(nats_server, Topology(NatsSettings(), HandlerSettings()), [Toy()])
    await log.append([an_event(1)])
    forbidden = {
        "STREAM.DELETE.A0_EV": b"",
        "STREAM.PURGE.A0_EV": b"",
        "STREAM.UPDATE.A0_EV": b"{}",
        "STREAM.CREATE.OTHER": b"{}",
        "STREAM.MSG.DELETE.A0_EV": b'{"seq":1}',
        "CONSUMER.DELETE.A0_EV.toy": b"",
        "CONSUMER.RESET.A0_EV.toy": b'{"seq":1}',
        "CONSUMER.DURABLE.CREATE.A0_EV.toy": b'{"stream_name":"A0_EV","config":{"durable_name":"toy"}}',
    }
    refusals: list[str] = []

    async def note(error: Exception) -> None:
        refusals.append(str(error))

    async with await nats.connect(**nats_server.options(role), error_cb=note) as client:  # type: ignore[arg-type]
        for subject, body in forbidden.items():
            await client.publish(f"$JS.API.{subject}", body)
        if role == "reader":
            await client.publish("a0.ev.r1.-.-.AlarmRaised", b"{}")
        async with asyncio.timeout(10):
            while len(refusals) < len(forbidden) + (role == "reader"):
                await asyncio.sleep(0.01)
    assert (await log.info()).last_seq == 1
    await check(log.client, Topology(NatsSettings(), HandlerSettings()), [Toy()])


async def test_a_reader_cannot_take_deliveries(log: Log, nats_server: Server) -> None:
    """Neither by asking for a handler's next message, nor by acknowledging one, nor by a name for that consumer."""
    topology = Topology(NatsSettings(), HandlerSettings())
    await init(nats_server, topology, [Toy()])
    await log.client.jsm().add_consumer("A0_EV", topology.run_consumer(Toy(), "r1"))
    await log.append([an_event(1)])
    asked = {
        "$JS.API.CONSUMER.MSG.NEXT.A0_EV.toy-r1": b'{"batch":1,"no_wait":true}',
        "$JS.API.CONSUMER.MSG.NEXT.A0_EV.": b"1",
        "$JS.ACK.A0_EV.toy-r1.1.1.1.1.0": b"+ACK",
        "$JS.API.CONSUMER.UNPIN.A0_EV.toy-r1": b"{}",
        "$JS.API.CONSUMER.PAUSE.A0_EV.toy-r1": b'{"pause_until":"2099-01-01T00:00:00Z"}',
        "$JS.API.CONSUMER.MSG.NEXT.A0_ADV.given_up": b"1",
        "$JS.API.CONSUMER.CREATE.A0_EV": b'{"stream_name":"A0_EV","config":{"name":"toy-r1","ack_policy":"explicit"}}',
        "$JS.API.CONSUMER.CREATE.A0_EV.toy-r1": b'{"stream_name":"A0_EV","config":{"name":"toy-r1"}}',
        "$JS.API.CONSUMER.DELETE.A0_EV.toy-r1": b"",
        "$JS.API.CONSUMER.DURABLE.CREATE.A0_EV.toy-r1": b'{"stream_name":"A0_EV","config":{"durable_name":"toy-r1"}}',
    }
    refusals: list[str] = []

    async def note(error: Exception) -> None:
        refusals.append(str(error))

    async with await nats.connect(**nats_server.options("reader"), error_cb=note) as client:  # type: ignore[arg-type]
        for subject, body in asked.items():
            await client.publish(subject, body, reply=client.new_inbox())
        async with asyncio.timeout(10):
            while len(refusals) < len(asked):
                await asyncio.sleep(0.01)
        for given in ({"name": "toy-r1"}, {"durable_name": "toy-r1"}, {"name": "toy-r1", "durable_name": "toy-r1"}):
            body = {"stream_name": "A0_EV", "config": {"ack_policy": "explicit", "max_deliver": 1, **given}}
            subject = f"$JS.API.CONSUMER.CREATE.A0_EV.{READER_NAMES[0]}"
            answer = json.loads((await client.request(subject, json.dumps(body).encode())).data)
            assert answer.get("name", READER_NAMES[0]) == READER_NAMES[0]  # refused, or its own
    info = await log.client.jsm().consumer_info("A0_EV", "toy-r1")
    assert (info.delivered.consumer_seq, info.num_ack_pending, info.num_pending) == (0, 0, 1)
    assert info.config.max_deliver == topology.run_consumer(Toy(), "r1").max_deliver


async def test_readers_share_their_names_and_leave_them_free(log: Log, nats_server: Server) -> None:
    """Several readers at once, each with consumers of its own; and many reads one after the other."""
    await log.append([an_event(1)])
    async with contextlib.AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(await Log.connect(nats_server, "reader")) for _ in range(6)]
        tails = [reader.tail(0) for reader in readers for _ in range(4)]
        assert [(await anext(tail)).type for tail in tails] == ["AlarmRaised"] * len(tails)
        for tail in tails:
            await tail.aclose()
        for _ in range(2 * len(READER_NAMES)):
            assert len([r async for r in readers[0].read()]) == 1
            assert not [r async for r in readers[0].read(after=1)], "nothing is new, and the name is free all the same"


async def test_a_reader_that_is_slow_is_sent_no_more_than_it_takes_and_misses_nothing(
    log: Log, nats_server: Server
) -> None:
    """Far more than the server sends before it wants to hear that it may go on."""
    events = [
        record(AlarmRaised(alarm=f"a{n}", severity="info", message="x" * 900_000), run="r1", time=an_event(0).time)
        for n in range(24)
    ]
    for event in events:
        await log.append([event])
    async with await Log.connect(nats_server, "reader") as reader:
        seen = []
        async for recorded in reader.read("r1"):
            seen.append(recorded.id)
            await reader.client.flush()  # turns of the event loop: what the server sends arrives meanwhile
        assert seen == [event.id for event in events]
        assert [r.id async for r in reader.read()] == seen
        following = reader.tail(0)
        assert [(await anext(following)).id for _ in events] == seen
        [seq] = await log.append([an_event(99)])
        assert (await anext(following)).seq == seq
        await following.aclose()  # type: ignore[attr-defined]


async def test_a_reader_of_an_external_server_that_may_not_ask_reads_all_the_same(
    log: Log, nats_server: Server
) -> None:
    events = [an_event(n) for n in range(300)]
    ids = [event.id for event in events]
    await log.append(events)
    access = {"url": nats_server.url, "user": "reader", "password": nats_server.password("reader")}
    async with await Log.connect(Server(NatsSettings(**access)), "reader") as reader:  # type: ignore[arg-type]
        assert [r.id async for r in reader.read()] == ids
        assert [r.id async for r in reader.read("r1")] == ids


async def test_the_reader_reads_and_is_told_that_it_may_not_write(log: Log, nats_server: Server) -> None:
    [seq] = await log.append([an_event(1)])
    async with await Log.connect(nats_server, "reader") as reader:
        assert [r.seq async for r in reader.read("r1")] == [seq]
        with pytest.raises(AuthError, match=r"refused to append.*permissions violation"):
            await reader.append([an_event(2)])
