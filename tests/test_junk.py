"""Messages on the log's subjects that are no events: named, stopped at with an instruction, set aside, gone past."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest

from agent0.assembly.log.access import open_log
from agent0.config.loading import load
from agent0.events.alarms import AlarmResolved
from agent0.events.base import record
from agent0.infra.log.nats_server import open_server
from agent0.settings import NatsSettings
from tests.kept_open import attached
from tests.terminal import agent0 as call
from tests.test_cli_run import SMALL
from tests.world import NOON

UNFIT = b'{"id":"x","type":"TaskAccepted","run":"r","time":"2026-01-01T00:00:00Z","data":{"no":1}}'

JUNK = {
    "no JSON": b"\x00\xff not an event",
    "nothing": b"",
    "no object": b"[1, 2]",
    "a type that there is not": b'{"id":"x","type":"NoSuchEvent","run":"r","data":{}}',
    "fields that do not fit": UNFIT,
    "an event of another subject": record(AlarmResolved(alarm="a"), run="r", time=NOON).to_json(),
}


async def publish(home: Path, subject: str, body: bytes) -> int:
    """As a stranger with the right to write does it; its sequence."""
    server = await open_server(home, NatsSettings())
    try:
        async with await nats.connect(**server.options("app")) as client:
            return (await client.jetstream().publish(subject, body)).seq
    finally:
        await server.stop()


def tables(home: Path) -> list[list[object]]:
    """What the tables hold, in short."""
    asked = "SELECT seq, id, type, run, body FROM events ORDER BY seq"
    return call("projections", "query", asked, "--limit", "100000", "--json", home=home).json


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with attached(tmp_path_factory.mktemp("junk")) as home:
        assert call("run", "start", *SMALL, "--iterations", "1", "--name", "first", home=home).code == 0
        yield home


@pytest.fixture(scope="module")
def aside(finished: Path) -> Path:
    """The same with junk for every handler, each set aside."""
    run = call("run", "list", "--json", home=finished).json[0]["run"]
    for kind in ("TaskAccepted", "TaskRequested", "RunResumed"):
        seq = asyncio.run(publish(finished, f"a0.ev.{run}.-.-.{kind}", b"junk for " + kind.encode()))
        assert call("events", "set-aside", str(seq), home=finished).code == 0
    return finished


def test_junk_of_every_kind_is_named_and_set_aside_and_tables_go_on(finished: Path) -> None:
    home = finished
    run = call("run", "list", "--json", home=home).json[0]["run"]
    before = tables(home)
    sealed = call("events", "verify", "--json", home=home)
    assert sealed.code == 0, sealed.out
    subjects = [f"a0.ev.{run}.-.-.TaskAccepted", "a0.ev.stray", f"a0.ev.{run}.-.-.RunResumed"]
    junk = {
        asyncio.run(publish(home, subjects[n % 3], body)): body for n, body in enumerate(JUNK.values())
    }  # each of them at its sequence
    named = call("events", "verify", "--json", home=home)
    assert named.code == 1
    assert [d["first"] for d in named.json["differences"] if d["problem"] == "foreign"] == list(junk)
    for seq in junk:
        stopped = call("run", "list", home=home)
        assert f"agent0 events set-aside {seq}" in stopped.err
        if seq == max(junk):
            refused = call("events", "export", str(home / "none"), home=home)
            assert refused.code == 1 and "AlarmResolved was published as" in refused.err
            assert "was published as" in stopped.err
        done = call("events", "set-aside", str(seq), "--reason", "not ours", "--json", home=home)
        assert done.code == 0, done.err
    again = call("events", "set-aside", str(min(junk)), home=home)
    assert again.code == 1 and "set aside before" in again.err
    valid = call("events", "set-aside", "1", home=home)
    assert valid.code == 1 and "can be read" in valid.err

    whole = call("events", "verify", "--json", home=home)
    assert (whole.code, whole.json["set_aside"], whole.json["differences"]) == (0, len(junk), [])
    rows = tables(home)
    assert rows[: len(before)] == before
    stand = {row["seq"]: json.loads(row["body"])["data"] for row in rows if row["type"] == "EventRedacted"}  # type: ignore[index]
    assert list(stand) == list(junk) and {d["why"] for d in stand.values()} == {"aside"}
    assert call("projections", "rebuild", "--verify", home=home).code == 0
    assert tables(home) == rows


def test_a_run_is_checked_and_another_one_carried_past_what_was_set_aside(aside: Path) -> None:
    run = call("run", "list", "--json", home=aside).json[0]["run"]
    checked = call("run", "check", run, "--json", home=aside)
    assert checked.code == 0, checked.err + checked.out
    later = call("run", "start", *SMALL, "--iterations", "1", home=aside)  # handlers are sent that junk, too
    assert later.code == 0, later.err


def test_an_archive_holds_tombstones_for_what_was_set_aside(aside: Path, tmp_path: Path) -> None:
    rows, archive, other = tables(aside), tmp_path / "archive", tmp_path / "other"
    assert call("events", "export", str(archive), home=aside).code == 0
    brought = call("events", "import", str(archive), home=other)
    assert brought.code == 0, brought.err
    assert call("events", "verify", home=other).code == 0
    assert tables(other)[: len(rows)] == rows


async def test_who_says_that_an_event_was_set_aside_hides_nothing(finished: Path) -> None:
    """Only what cannot be read is replaced, and only where the digest is that of what is stored."""
    from agent0.assembly.runtime.stamping import recorded
    from agent0.events.alarms import LOG, MessageExcluded
    from agent0.events.base import sha256

    settings = load("scripted", {"home": str(finished)}, {})
    async with open_log(settings) as log:
        body = await log.body(1)
        await log.append([recorded(LOG, MessageExcluded(at=1, sha256=sha256(body)))])
        junk = await log.client.jetstream().publish("a0.ev.stray", b"more")
        await log.append([recorded(LOG, MessageExcluded(at=junk.seq, sha256=sha256("another")))])
    async with open_log(settings, "reader") as log:
        assert set(log.asides) >= {1, junk.seq}
        assert await log.body(1) == body and await log.body(junk.seq) == b"more"
