"""A server from Python: one that is away, too old, of another kind or behind another key is one typed error that says
what to do, and a stream that is cut goes on without an event twice."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import agent0
from agent0.api.admission.keys import KeyFile
from agent0.errors import Agent0Error, AuthError, ConfigError, DependencyError, NotFoundError, OperationError
from agent0.infra.web.agent0_server import ServerLink, ServerVersionError
from tests.api.served import stored, viewed
from tests.client_cases import TABLE
from tests.loopback import listening
from tests.story import whole_run

STORY = whole_run(iterations=1)
LARGEST = 2 * max(len(event.to_json()) for event in STORY)
"""Bytes in which any event comes through."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("story"), STORY)


@contextmanager
def answering(pages: dict[str, Any]) -> Iterator[str]:
    """A server that gives each path a status and a text, or the next ones of an iterator; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0], (404, "{}"))
            status, text = next(page) if isinstance(page, Iterator) else page
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

    with listening(Handler) as server:
        yield server.url


def test_what_is_no_address_is_refused_before_anything_is_sent() -> None:
    for url in ("", "localhost:8650", "ftp://x", "http://user:secret@host"):
        with pytest.raises(ConfigError, match="no address of a server") as refused:
            agent0.connect(url)
        assert "secret" not in str(refused.value)


def test_a_server_that_is_away_is_named_with_what_to_do() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(DependencyError, match=f"The server at {url} is not available.*`agent0 up`"):
            agent0.connect(url).run()


@pytest.mark.parametrize("kind", TABLE["strangers"])
def test_who_answers_is_told_as_in_the_table(kind: str) -> None:
    """Versions one apart, strangers, problems: as the client for TypeScript is held to."""
    stranger = TABLE["strangers"][kind]
    with answering(stranger["pages"]) as url:
        server = agent0.connect(url, "agent0_secret")
        if "gives" in stranger:
            assert server.run().id == stranger["gives"]
            return
        with pytest.raises(Agent0Error) as raised:
            server.run()
    assert type(raised.value).__name__ == stranger["error"]
    assert [text for text in stranger["says"] if text not in str(raised.value)] == []
    assert "agent0_secret" not in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize("key", ["agent0_secret\n", "agent0 secret", "agent0_s\u00e9cret"])
def test_a_key_that_is_none_is_refused_unshown(key: str) -> None:
    with pytest.raises(ConfigError, match="characters that no key has") as refused:
        agent0.connect(key=key)
    assert "cret" not in str(refused.value)


def test_a_newer_servers_event_is_one_line(home: Path) -> None:
    event = {"seq": 1, "text": "", **json.loads(STORY[0].to_json()), "type": "RunDreamed"}
    pages = {"/version": (200, '{"version": "0.9"}'), "/v1/runs/r1": (200, '{"run": "r1"}')}
    pages["/v1/events"] = (200, json.dumps({"data": [event], "next": None}))
    with answering(pages) as url, pytest.raises(ServerVersionError, match=r"newer than this client.*RunDreamed.*pip"):
        _ = agent0.connect(url).run("r1").status


def test_a_key_is_asked_for_and_what_it_may_not_is_said(tmp_path: Path) -> None:
    key = KeyFile(stored(tmp_path, STORY)).add("reader", "read")
    with viewed(tmp_path) as page:
        url = page.removesuffix("/runs")
        for wrong in ("", "agent0_wrong"):
            with pytest.raises(AuthError, match=r"agent0\.connect\(URL, KEY\).*agent0 api key add"):
                agent0.connect(url, wrong).runs()
        run = agent0.connect(url, key).run("r1")
        assert run.status == "finished" and run.progress.share == 1
        with pytest.raises(AuthError, match=r"may not do this.*scope admin"):
            run.cancel()


def test_a_server_that_only_reads_says_so_and_shows_the_same(home: Path) -> None:
    with viewed(home) as page:
        server, folder = agent0.connect(page.removesuffix("/runs")), agent0.open(home, read_only=True)
        there, here = server.run("r1"), folder.run("r1")
        assert [*there.events()] == [*here.events()] and there.metrics() == here.metrics()
        assert there.progress == here.progress and there._repr_html_().count("<svg") == 1
        assert repr(there) == "RunHandle('r1', finished)" and "r1" in server._repr_html_()
        with pytest.raises(OperationError, match="only reads"):
            there.cancel()
        for refused in (lambda: server.run("r2"), lambda: there.metrics("x"), lambda: server.run("a/../b?c#d")):
            with pytest.raises(NotFoundError):
                refused()


def test_every_step_of_the_trainings_is_measured(home: Path) -> None:
    """By a folder and a server, by coroutines and without: their rows stand behind those of the iterations."""
    with viewed(home) as page:
        for place in (agent0.connect(page.removesuffix("/runs")), agent0.open(home, read_only=True)):
            run = place.run("r1")
            for metrics in (run.metrics, lambda *names, of=run: asyncio.run(of.aio.metrics(*names))):
                every, losses, curve = metrics(), metrics("training/student/loss"), metrics("curve/validation")
                assert [row["step"] for row in losses] == [1, 2, 3, 4, 5, 6]
                assert [row["training/student/loss"] for row in losses[:5]] == [-0.01, -0.02, -0.03, -0.04, None]
                assert [row["step"] for row in curve] == [0, 1] and "training/student/loss" not in curve[0]
                both = metrics("curve/validation", "training/student/loss")
                assert both == [dict.fromkeys(both[0]) | row for row in (*curve, *losses)]
                assert both == [{name: row[name] for name in both[0]} for row in every]


@asynccontextmanager
async def cutting(url: str, size: int) -> AsyncIterator[tuple[str, list[int]]]:
    """A proxy of ``url`` that cuts each connection after ``size`` bytes of an answer; its address, and the cuts."""
    host, port = url.removeprefix("http://").split(":")
    cuts: list[int] = []

    async def asking(reader: asyncio.StreamReader, on: asyncio.StreamWriter) -> None:
        while part := await reader.read(4096):
            on.write(part)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, on = await asyncio.open_connection(host, int(port))
        forth = asyncio.ensure_future(asking(reader, on))
        left = size
        try:
            while left > 0 and (part := await there.read(min(left, 4096))):
                writer.write(part)
                left -= len(part)
            cuts.extend([size] * (left <= 0))
            await writer.drain()
        finally:
            forth.cancel()
            writer.close()
            on.close()

    def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relays.append(asyncio.ensure_future(relay(reader, writer)))

    relays: list[asyncio.Future[None]] = []
    async with await asyncio.start_server(taken, "127.0.0.1", 0) as proxy:
        yield f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}", cuts
    for relayed in relays:
        relayed.cancel()
    await asyncio.gather(*relays, return_exceptions=True)


@pytest.mark.parametrize("size", [4 * LARGEST + 7, 10 * LARGEST])
async def test_a_stream_that_is_cut_goes_on_with_no_event_twice(
    home: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent0.infra.web.agent0_server.AGAIN_S", 0.001)
    with viewed(home) as page:
        async with cutting(page.removesuffix("/runs"), size) as (url, cuts):
            seen: list[int] = []
            async with aclosing(ServerLink(url, "", 30).stream({"run": "r1"}, 0)) as events:
                async for event in events:
                    seen.append(event["seq"])
                    if len(seen) == len(STORY):
                        break
    assert seen == [event.seq for event in STORY] and cuts


@pytest.mark.parametrize("case", TABLE["streams"], ids=lambda case: json.dumps(case["text"]))
async def test_streams_are_read_as_in_the_table(case: dict[str, Any]) -> None:
    """A message counts when it is whole, and an event comes once."""
    pages = {"/version": (200, '{"version": "0.1.0"}'), "/v1/events": (200, case["text"])}
    with answering(pages) as url:
        async with aclosing(ServerLink(url, "", 30).stream({}, 0)) as stream:
            assert [(await anext(stream))["seq"] for _ in case["gives"]] == case["gives"]


async def test_a_message_that_is_cut_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent0.infra.web.agent0_server.AGAIN_S", 0.001)
    parts = ['data: {"seq": 1}\n\ndata: {"seq": 2, "te', 'data: {"seq": 2}\n', 'data: {"seq": 2}\n\n']
    pages = {"/version": (200, '{"version": "0.1.0"}'), "/v1/events": iter([(200, part) for part in parts])}
    with answering(pages) as url:
        async with aclosing(ServerLink(url, "", 30).stream({}, 0)) as stream:
            assert [(await anext(stream))["seq"] for _ in range(2)] == [1, 2]


async def test_a_server_that_does_not_come_back_ends_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent0.infra.web.agent0_server.AGAIN_S", 0.001)
    stored(tmp_path, STORY[:20])
    with viewed(tmp_path) as page:
        run = await agent0.connect(page.removesuffix("/runs"), patience_s=0.1).aio.run("r1")
        events = run.events(follow=True)
        seen = [(await anext(events)).seq for _ in range(20)]
    with pytest.raises(DependencyError, match=r"did not come back in 0\.1 s"):
        await anext(events)
    assert seen == [*range(1, 21)]


async def test_waiting_survives_a_server_that_starts_again(tmp_path: Path) -> None:
    stored(tmp_path, STORY[:-1])
    with viewed(tmp_path) as page:
        run = await agent0.connect(page.removesuffix("/runs")).aio.run("r1")
        waiting = asyncio.ensure_future(run.wait())
        assert await run.status() == "running"
        port = page.removesuffix("/runs").rpartition(":")[2]
    stored(tmp_path, STORY)
    assert not waiting.done()
    with viewed(tmp_path, port=int(port)):
        assert await waiting == "finished"
