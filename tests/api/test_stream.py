"""The stream: ids are sequences, whoever comes back loses and repeats nothing, and a reader that leaves is let go."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.api.context import ApiContext
from agent0.api.v1.events import EventFilter, stream
from agent0.infra.storage import sqlite
from agent0.projections import Projector, tables
from tests.api.served import stored, viewed
from tests.patience import until
from tests.story import bodies, whole_run

STREAM = {"Accept": "text/event-stream"}


def frames(text: str) -> list[tuple[int, dict[str, object]]]:
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((int(lines["id"]), json.loads(lines["data"])))
    return found


@settings(max_examples=5)
@given(cuts=st.sets(st.integers(1, 402), max_size=6))
def test_whoever_comes_back_loses_and_repeats_nothing(client: TestClient, cuts: set[int]) -> None:
    whole = client.get("/v1/events", params={"limit": 1000}).json()["data"]
    seen, last = [], ""
    for end in (*sorted(cuts), len(whole)):
        text = client.get("/v1/events", params={"until": end}, headers={**STREAM, "Last-Event-ID": last}).text
        seen += frames(text)
        last = str(seen[-1][0])
    assert [body for _, body in seen] == whole
    assert [seq for seq, _ in seen] == [body["seq"] for body in whole]


def test_a_stream_can_be_narrowed(client: TestClient) -> None:
    wanted = {"run": "LAST", "type": "TaskAccepted"}
    page = client.get("/v1/events", params={**wanted, "limit": 1000}).json()["data"]
    sent = frames(client.get("/v1/events", params={**wanted, "until": 403}, headers=STREAM).text)
    assert [body for _, body in sent] == page and {body["type"] for body in page} == {"TaskAccepted"}


def test_a_cursor_from_the_future_is_refused(client: TestClient) -> None:
    assert client.get("/v1/events", headers={**STREAM, "Last-Event-ID": "999999"}).status_code == 404
    assert client.get("/v1/events", headers={**STREAM, "Last-Event-ID": "x"}).status_code == 422


def test_it_tells_what_happens_and_goes_on_in_rebuilt_tables(tmp_path: Path) -> None:
    """Over a real socket: events come as they are written, also to tables that a rebuild put in place."""
    story = whole_run(iterations=1)
    stored(tmp_path, story[:20])
    with viewed(tmp_path) as url, httpx2.stream("GET", f"{url}/v1/events?after=15", headers=STREAM, timeout=60) as sent:
        lines = sent.iter_lines()
        seen = [_next(lines) for _ in range(5)]
        stored(tmp_path, story[:25])
        seen += [_next(lines) for _ in range(5)]
        other = Projector(tmp_path / "tables" / "view-2.db", sqlite.connect, tables(), "stream")
        other.apply(bodies(story[:30]))
        other.close()
        (tmp_path / "tables" / "view-2.db").replace(tmp_path / "tables" / "view.db")
        seen += [_next(lines) for _ in range(5)]
    assert seen == [*range(16, 31)]


KILLS = 50


@pytest.mark.slow
def test_a_server_that_is_killed_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """`agent0 view` as a process, killed in mid-stream; the client goes on behind the last id that it saw."""
    story = whole_run(iterations=3)
    home, seen = stored(tmp_path, story), list[int]()
    command, kills = [sys.executable, "-m", "agent0", "view", str(home), "--port", "0"], 0
    while len(seen) < len(story):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            url = process.stdout.readline().strip().removesuffix("/runs")
            with following(url, seen) as sent:
                seen += [_next(sent) for _ in range(min(len(story) // KILLS, len(story) - len(seen)))]
                process.kill()
        kills += 1
    assert seen == [*range(1, len(story) + 1)] and kills >= KILLS


def test_a_server_that_ends_in_mid_stream_loses_and_repeats_nothing(tmp_path: Path) -> None:
    story, seen = whole_run(iterations=1), list[int]()
    stored(tmp_path, story)
    for number in (7, 40, len(story) - 47):
        with viewed(tmp_path) as url, following(url, seen) as sent:
            seen += [_next(sent) for _ in range(number)]
    assert seen == [*range(1, len(story) + 1)]


@contextmanager
def following(url: str, seen: list[int]) -> Iterator[Iterator[str]]:
    """The lines of the stream behind the last of what was ``seen``."""
    headers = {**STREAM, "Last-Event-ID": str(seen[-1]) if seen else ""}
    with httpx2.stream("GET", f"{url}/v1/events", headers=headers, timeout=60) as sent:
        yield sent.iter_lines()


def _next(lines: Iterator[str]) -> int:
    for line in lines:
        if line.startswith("id: "):
            return int(line[4:])
    raise AssertionError("the stream ended")


async def test_readers_that_leave_are_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Tabs that are closed in mid-stream: nothing of their streams stays, and nothing is written to them any more."""
    held: list[str] = []

    async def counted(*given: Any) -> AsyncIterator[bytes]:
        held.append("a stream")
        try:
            async with aclosing(stream(*given)) as sent:
                async for part in sent:
                    yield part
        finally:
            held.pop()

    monkeypatch.setattr("agent0.api.v1.events.stream", counted)
    with viewed(stored(tmp_path, whole_run(iterations=3))) as url:
        async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
            for after in range(0, 200, 20):
                async with client.stream("GET", f"/v1/events?after={after}", headers=STREAM) as sent:
                    await anext(sent.aiter_lines())
        await until(lambda: not held, "streams to end")
    assert "socket.send() raised exception" not in caplog.text


async def test_streams_end_with_their_server(context: ApiContext) -> None:
    context.ending.set()
    try:
        assert [one async for one in stream(context, EventFilter("", "", ""), 403)] == [b": ping\n\n"]
    finally:
        context.ending.clear()
