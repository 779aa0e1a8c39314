"""Connections of strangers over real sockets: half requests, slow bodies and floods keep nobody with a key out."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from agent0.api.admission import connections
from agent0.api.admission.keys import KeyFile
from tests.api.served import stored, viewed
from tests.api.test_stream import STREAM
from tests.story import whole_run

HALF = b"GET /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SLOW = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nkey="


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return stored(tmp_path, whole_run(iterations=1)[:30])


def admin(address: str, home: Path, name: str = "me") -> httpx2.Client:
    """A client with a key of its own."""
    key = KeyFile(home).add(name, "admin")
    return httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}, timeout=60)


@contextmanager
def sent(address: str, text: bytes, number: int, hosts: int = 1) -> Iterator[list[socket.socket]]:
    """``number`` connections that have sent ``text`` and nothing more, of so many addresses of this machine."""
    port = int(address.rpartition(":")[2])
    with ExitStack() as stack:
        opened = []
        for n in range(number):
            own = ("127.0.0.1", 0) if hosts == 1 else (f"127.0.1.{n % hosts + 1}", 0)
            link = stack.enter_context(socket.create_connection(("127.0.0.1", port), 60, own))
            link.sendall(text)
            opened.append(link)
        yield opened


def rest_of(link: socket.socket) -> bytes:
    """Everything that is still sent on ``link`` until its end."""
    parts = []
    try:
        while part := link.recv(4096):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize("hosts", [1, 200])
@pytest.mark.parametrize("text", [b"", HALF, SLOW], ids=["nothing", "half a head", "half a body"])
def test_six_hundred_half_requests_keep_no_key_out(folder: Path, text: bytes, hosts: int) -> None:
    with viewed(folder) as address, admin(address, folder) as client, sent(address, text, 600, hosts):
        for _ in range(3):
            assert client.get("/v1/runs", headers={"Connection": "close"}).status_code == 200
        assert client.get("/v1/config").status_code == 200


def test_who_was_answered_goes_before_who_has_just_come(folder: Path) -> None:
    health = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with viewed(folder, connections_per_address=3) as address, ExitStack() as links:
        [late] = links.enter_context(sent(address, b"", 1))
        for _ in range(3):
            [other] = links.enter_context(sent(address, health, 1))
            assert other.recv(4096).startswith(b"HTTP/1.1 200 ")
        late.sendall(health)
        assert late.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_a_stranger_among_too_many_is_refused_with_the_reason(folder: Path) -> None:
    with (
        viewed(folder, connections_per_address=3) as address,
        admin(address, folder) as client,
        sent(address, SLOW, 3),
    ):
        refused = httpx2.get(f"{address}/login", timeout=60)
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:agent0:problem:server_full")
        assert "api.connections_per_address" in refused.json()["detail"] and refused.headers["retry-after"]
        assert client.get("/v1/runs").status_code == 200


def test_seats_are_kept_for_those_with_a_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections.Seats.__init__, "__defaults__", (8, 4))
    with viewed(folder) as address, admin(address, folder) as client, sent(address, SLOW, 4, hosts=4):
        refused = httpx2.get(f"{address}/login", timeout=60)
        assert refused.status_code == 503 and "kept for those with a key" in refused.text
        assert client.get("/v1/runs").status_code == 200


def test_heads_and_bodies_have_a_deadline(folder: Path) -> None:
    KeyFile(folder).add("me", "read")
    with viewed(folder, request_s=0.2) as address:
        with sent(address, HALF, 1) as [head], sent(address, SLOW, 1) as [body], sent(address, b"", 1) as [silent]:
            assert rest_of(head).startswith(b"HTTP/1.1 408 ")
            reply = rest_of(body)
            assert reply.startswith(b"HTTP/1.1 408 ") and b"api.request_s" in reply
            assert rest_of(silent) == b""
        with sent(address, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /healthz HT", 1) as [second]:
            reply = rest_of(second)
            assert reply.startswith(b"HTTP/1.1 200 ") and b"HTTP/1.1 408 " in reply


def test_a_stream_lives_longer_than_the_deadline(folder: Path) -> None:
    story = whole_run(iterations=1)
    with (
        viewed(folder, request_s=0.1) as address,
        admin(address, folder) as client,
        client.stream("GET", "/v1/events?after=29", headers=STREAM) as answer,
    ):
        lines = answer.iter_lines()
        for number in range(30, 36):
            stored(folder, story[:number])
            assert next(line for line in lines if line.startswith("id: ")) == f"id: {number}"


def test_streams_end_when_their_key_is_removed(folder: Path) -> None:
    with viewed(folder) as address, admin(address, folder) as client, admin(address, folder, "other") as other:
        with (
            client.stream("GET", "/v1/events", headers=STREAM) as ending,
            other.stream("GET", "/v1/events", headers=STREAM) as staying,
        ):
            KeyFile(folder).remove("me")
            assert sum(line.startswith("id: ") for line in ending.iter_lines()) == 30
            lines = staying.iter_lines()
            assert [next(line for line in lines if line.startswith("id: ")) for _ in range(30)][-1] == "id: 30"
            stored(folder, whole_run(iterations=1)[:31])
            assert next(line for line in lines if line.startswith("id: ")) == "id: 31"
        assert client.get("/v1/events", headers=STREAM).status_code == 401
