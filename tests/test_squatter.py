"""Another program on the port of an embedded log's server: it is sent nothing, and what is wrong is said."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent0.errors import DependencyError
from agent0.events import Recorded
from agent0.events.alarms import AlarmRaised
from agent0.events.base import record
from agent0.infra.bus.bus import Bus
from agent0.infra.log import server_proof
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import ROLES, Role, Server, open_server
from agent0.infra.log.streams import Topology, init
from agent0.settings import HandlerSettings, NatsSettings, Settings

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.filterwarnings(
        "ignore:unclosed <StreamWriter:ResourceWarning"
    ),  # nats-py's, of a server that it gave up
]

SQUATTER = """
import json, pathlib, socket, sys, threading
port, name, heard = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
while True:
    try:
        listener.bind(("127.0.0.1", port))
        break
    except OSError:
        pass
listener.listen()
pathlib.Path(str(heard) + ".ready").touch()
info = {"server_name": name, "server_id": "S", "version": "2.15.1", "headers": True, "max_payload": 1048576,
        "auth_required": sys.argv[4] == "auth", "nonce": "n" * 16, "proto": 1}
def serve(link):
    link.sendall(b"INFO " + json.dumps(info).encode() + b"\\r\\n")
    while data := link.recv(65536):
        with heard.open("ab") as file:
            file.write(data)
        if b"PING" in data:
            link.sendall(b"PONG\\r\\n")
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


class Squatter:
    """A real process of the same user that takes ``port`` as soon as it is free, greets as the server did and keeps
    what it hears."""

    def __init__(self, server: Server, folder: Path, *, auth: bool = True) -> None:
        self.heard, port = folder / f"heard-{time.monotonic_ns()}", server.url.rpartition(":")[2]
        arguments = [port, server.name, str(self.heard), "auth" if auth else "open"]
        self._process = subprocess.Popen([sys.executable, "-c", SQUATTER, *arguments])
        self.pid = self._process.pid

    async def ready(self, server: Server | None = None) -> None:
        """Wait until it has the port; where a server has it, that one is killed until it has lost it."""
        async with asyncio.timeout(60):
            while not Path(f"{self.heard}.ready").exists():
                if server and server.pid:
                    os.kill(server.pid, signal.SIGKILL)
                await asyncio.sleep(0.01)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def said(self) -> bytes:
        return self.heard.read_bytes() if self.heard.exists() else b""


@pytest.fixture
def squatters() -> Iterator[list[Squatter]]:
    made: list[Squatter] = []
    yield made
    for one in made:
        one.end()


def an_event(n: int) -> Recorded:
    event = AlarmRaised(alarm=f"a{n}", severity="info", message="m")
    return record(event, run="r1", time=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("auth", [True, False])
async def test_a_squatter_on_the_recorded_port_is_passed_by(
    tmp_path: Path, squatters: list[Squatter], auth: bool
) -> None:
    first = await open_server(tmp_path / "home", NatsSettings())
    await init(first, Topology(NatsSettings(), HandlerSettings()), ())
    await first.stop()
    squatters.append(squatter := Squatter(first, tmp_path, auth=auth))
    await squatter.ready()
    second = await open_server(tmp_path / "home", NatsSettings())
    try:
        assert second.url != first.url and second.name == first.name
        async with await Log.connect(second) as log:
            assert await log.append([an_event(1)]) == [1]
    finally:
        await second.stop()
    assert squatter.said == b""


@pytest.mark.parametrize("auth", [True, False])
async def test_who_connects_to_a_squatter_sends_nothing_and_says_who_it_is(
    nats_server: Server, tmp_path: Path, squatters: list[Squatter], auth: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("agent0.infra.log.connection.CONNECT_S", 1.5)
    elsewhere = await open_server(tmp_path / "other", NatsSettings())
    squatters.append(squatter := Squatter(elsewhere, tmp_path, auth=auth))
    url = elsewhere.url
    await elsewhere.stop()
    await squatter.ready()
    usurped = Server(NatsSettings(), nats_server.folder)
    usurped.url = url

    async def refused(role: Role) -> None:
        with pytest.raises(DependencyError, match=rf"process {squatter.pid} .*Nothing was sent.*End that program"):
            await Log.connect(usurped, role)

    await asyncio.gather(*map(refused, ROLES))
    assert squatter.said == b""


async def test_who_is_attached_when_the_port_is_taken_sends_nothing_and_goes_on_when_it_is_free(
    nats_server: Server, log: Log, tmp_path: Path, squatters: list[Squatter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reconnections are where a client would show its password by itself: the log's and the bus's."""
    bus = Bus(log, (), {}, lambda state, _: state, Settings())
    await bus.start()
    port, log.patience_s = nats_server.url.rpartition(":")[2], 1
    monkeypatch.setattr("agent0.infra.log.connection.ANSWER_S", 2)
    monkeypatch.setattr("agent0.infra.log.event_log.ANSWER_S", 2)
    squatters.append(squatter := Squatter(nats_server, tmp_path))
    await squatter.ready(nats_server)
    with pytest.raises(DependencyError, match=rf"process {squatter.pid} .*Nothing was sent.*End that program"):
        for n in range(20):
            await log.append([an_event(n)])
    with pytest.raises(DependencyError, match=rf"Port {port}, where others look for the log, is taken"):
        await open_server(nats_server.folder.parent, NatsSettings())  # type: ignore[union-attr]
    assert squatter.said == b""
    squatter.end()
    async with asyncio.timeout(60):
        while not (bus._link.client.is_connected and log.client.is_connected):
            await asyncio.sleep(0.02)
    assert await log.append([an_event(100)])
    await bus.stop()
    assert squatter.said == b"" and json.loads((nats_server.folder / "server.json").read_text())["port"] == int(port)  # type: ignore[operator]


async def test_a_greeting_without_an_answer_is_no_server(tmp_path: Path) -> None:
    """Neither is one that never comes, or one in another form."""
    first = await open_server(tmp_path, NatsSettings())
    port = int(first.url.rpartition(":")[2])
    await first.stop()
    for greeting in (b"", b"INFO []\r\n", b"INFO {}\r\n", b"220 mail\r\n"):

        async def greet(_: object, writer: asyncio.StreamWriter, greeting: bytes = greeting) -> None:
            writer.write(greeting)
            writer.close()

        listener = await asyncio.start_server(greet, "127.0.0.1", port)
        try:
            second = await open_server(tmp_path, NatsSettings())
            assert second.pid
            await second.stop()
        finally:
            listener.close()
            await listener.wait_closed()


async def test_a_kernel_that_does_not_answer_for_one_socket_is_read_by_its_table(
    nats_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, port = nats_server.folder, int(nats_server.url.rpartition(":")[2])
    assert folder
    known = server_proof.asked_name(folder, port)
    monkeypatch.setattr(server_proof, "_SOCK_DIAG", 999)  # a protocol of netlink that no kernel has
    with pytest.raises(OSError, match="rotocol"):
        server_proof._diagnosed(("127.0.0.1", port), ("127.0.0.1", 1))
    assert known == server_proof.asked_name(folder, port) != ""


async def test_a_connection_that_nobody_has_accepted_is_nobodys() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname()) as link:
            assert server_proof._diagnosed(link.getpeername(), link.getsockname()) is None
            with listener.accept()[0] as accepted:
                found = server_proof._diagnosed(link.getpeername(), link.getsockname())
                assert found and found.inode == os.fstat(accepted.fileno()).st_ino and found.uid == os.getuid()
