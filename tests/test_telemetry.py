"""What other systems are told: spans to a collector, notices to a webhook, logs as JSON. Both receivers are real."""

import base64
import io
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from agent0.assembly.telemetry.followers import CHATS as FORMATS
from agent0.assembly.telemetry.followers import NOTICES, SIGNATURE, Calm, Follower, followers, post, signature
from agent0.assembly.telemetry.spans import DISCORD_CHARACTERS, EXPORTED, SLACK_CHARACTERS, otlp, spans_of
from agent0.config.loading import public
from agent0.errors import ConfigError
from agent0.events.alarms import AlarmRaised, AlarmResolved
from agent0.events.base import Recorded, record
from agent0.infra.telemetry.json_logs import about, json_logs
from agent0.settings import Settings, TelemetrySettings
from tests.api.served import stored
from tests.loopback import listening
from tests.story import renumbered, whole_run

STORY = whole_run(iterations=1, tasks=2, attempts=2)
RECEIVER = Path(__file__).parents[1] / "integrations" / "webhooks" / "receiver.py"


@dataclass
class Receiver:
    """An HTTP server that keeps what it gets; ``refuses`` that many requests first."""

    address: str = ""
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    refuses: int = 0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    held = Receiver()

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            refused, held.refuses = held.refuses > 0, max(0, held.refuses - 1)
            if not refused:
                held.got.append((self.path, dict(self.headers), body))
            self.send_response(503 if refused else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with listening(Answer) as server:
        held.address = server.url
        yield held


def follower(home: Path, calm_s: float = 0, **telemetry: str) -> Follower:
    """One that begins before the first event."""
    [found] = followers(Settings(home=home, telemetry=TelemetrySettings(calm_s=calm_s, **telemetry)))
    (home / "followers").mkdir(exist_ok=True)
    (home / "followers" / f"{found.name}.json").write_text('{"seq": 0}')
    return found


async def test_a_collector_gets_the_spans_of_the_log(receiver: Receiver, tmp_path: Path) -> None:
    """Each attempt is a trace: its span holds those of its tools and of its verdict; what was said is not sent."""
    found = follower(stored(tmp_path, STORY), otlp_url=receiver.address)
    while await found.step():
        pass
    assert {path for path, _, _ in receiver.got} == {"/v1/traces"}
    bodies = [json.loads(body) for _, _, body in receiver.got]
    spans = [one for body in bodies for one in body["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    attempts = [e for e in STORY if e.type == "TaskAttempted"]
    by_operation: dict[str, list[Any]] = {}
    for span in spans:
        span["held"] = {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}
        by_operation.setdefault(span["held"]["gen_ai.operation.name"], []).append(span)
    assert {name: len(held) for name, held in by_operation.items()} == {
        "invoke_agent": len(attempts),
        "chat": len(attempts) + sum(e.type == "ModelCalled" for e in STORY),
        "execute_tool": sum(e.type == "ToolCalled" for e in STORY),
        "evaluation": sum(e.type == "ResultVerified" for e in STORY),
    }
    roots = {one["traceId"]: one for one in by_operation["invoke_agent"]}
    assert len(roots) == len(attempts) and not any("parentSpanId" in one for one in roots.values())
    for span in [*by_operation["execute_tool"], *by_operation["evaluation"]]:
        assert roots[span["traceId"]]["spanId"] == span["parentSpanId"]
    assert len({(one["traceId"], one["spanId"]) for one in spans}) == len(spans)
    assert all(int(one["startTimeUnixNano"]) <= int(one["endTimeUnixNano"]) for one in spans)
    last = roots[[*roots][-1]]
    assert int(last["endTimeUnixNano"]) == round(attempts[-1].time.timestamp() * 1e6) * 1000
    words = json.dumps(bodies)
    assert not any(turn.content in words for e in attempts for turn in e.event.transcript)  # type: ignore[attr-defined]


def test_spans_are_what_the_protocol_declares() -> None:
    """Read by the protocol's own declarations, which refuse fields that there are not. `make sinks` installs them."""
    declared = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="make sinks")
    from google.protobuf import json_format  # type: ignore[import-untyped,unused-ignore]

    body = otlp([span for e in STORY if e.type in EXPORTED for span in spans_of(e)], "0")
    held = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for span in held:  # ids are bytes there, in hex in OTLP's JSON alone
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    read = json_format.ParseDict(body, declared.ExportTraceServiceRequest(), ignore_unknown_fields=False)
    spans = read.resource_spans[0].scope_spans[0].spans
    assert len(spans) == len(held) > 10 and {(len(one.trace_id), len(one.span_id)) for one in spans} == {(16, 8)}
    assert {one.key for one in read.resource_spans[0].resource.attributes} >= {"service.name"}


async def test_a_webhook_gets_signed_notices_and_misses_none(receiver: Receiver, tmp_path: Path) -> None:
    found = follower(stored(tmp_path, STORY), webhook_url=f"{receiver.address}/hook", webhook_secret="s3cret")
    receiver.refuses = 1
    with pytest.raises(OSError, match="503"):
        await found.step()
    while await found.step():
        pass
    told = [json.loads(body) for _, _, body in receiver.got]
    assert [one["seq"] for one in told] == [e.seq for e in STORY if e.type in NOTICES] and len(told) > 2
    for path, headers, body in receiver.got:
        stamp, given = headers[SIGNATURE].removeprefix("t=").split(",v1=")
        assert path == "/hook" and given == signature("s3cret", stamp, body) != signature("other", stamp, body)
        event, named = json.loads(body), {k.lower(): v for k, v in headers.items() if k.lower().startswith("ce-")}
        assert named.pop("ce-time") == datetime.fromisoformat(event["time"]).isoformat()
        assert named == {
            **{"ce-specversion": "1.0", "ce-id": event["id"], "ce-source": f"/v1/runs/{event['run']}"},
            "ce-type": f"agent0.{event['type']}",
        }
    stored(tmp_path, [*STORY, STORY[-1].model_copy(update={"seq": len(STORY) + 1, "id": "again"})])
    await found.step()  # another one of its kind goes on where it was
    assert len(receiver.got) == len(told) + 1


async def test_the_receiver_of_webhooks_takes_each_once_and_refuses_forgeries(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(RECEIVER), str(port)]
    environment = {**os.environ, "AGENT0_TELEMETRY__WEBHOOK_SECRET": "s3cret"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None
        url = f"http://127.0.0.1:{port}"
        found = follower(stored(tmp_path, STORY), webhook_url=url, webhook_secret="s3cret")
        for _ in range(2):
            while await found.step():
                pass
            (tmp_path / "followers" / "webhook.json").write_text('{"seq": 0}')  # all of it comes again
        body = b'{"id": "forged", "seq": 1, "type": "AlarmRaised", "run": "r1", "data": {}}'
        good = signature("s3cret", "1", b"another body")
        for header in ("", "t=1", "v1=", f"t=1,v1={good}", "t=1,v1=\u00e9", f"t=1,v1={signature('other', '1', body)}"):
            with pytest.raises(OSError, match="401"):
                post(url, body, {SIGNATURE: header})
    finally:
        process.terminate()
        lines = process.communicate()[0].splitlines()
    expected = [(str(e.seq), e.type) for e in STORY if e.type in NOTICES]
    assert [tuple(line.split()[:2]) for line in lines] == expected


CALM = timedelta(seconds=100)
MOVES = st.lists(st.tuples(st.integers(1, 300), st.sampled_from("ab"), st.booleans()), max_size=30)


def alarms(moves: list[tuple[int, str, bool]]) -> list[Recorded]:
    """Alarms that are raised and resolved in turns, so many seconds after one another."""
    at, on, told = STORY[0].time, {"a": False, "b": False}, list[Recorded]()
    for seq, (seconds, name, _) in enumerate(moves, 1):
        at, on[name] = at + timedelta(seconds=seconds), not on[name]
        raised = AlarmRaised(alarm=name, severity="warning", message="m")
        event = raised if on[name] else AlarmResolved(alarm=name)
        told.append(record(event, run="r1", time=at).model_copy(update={"seq": seq}))
    return told


@settings(max_examples=60, deadline=None)
@given(MOVES)
def test_an_alarm_that_flaps_is_told_once_when_it_begins_and_once_when_it_ends(
    moves: list[tuple[int, str, bool]],
) -> None:
    story = alarms(moves)
    end = (story[-1].time if story else STORY[0].time) + CALM
    whole, left = Calm(CALM).take(story, end)
    assert left.ends == ()
    for name in "ab":
        every = [one for one in story if one.event.alarm == name]  # type: ignore[attr-defined]
        ends = [pair for pair in pairwise(every) if pair[0].type == "AlarmResolved"]
        short = [pair for pair in ends if pair[1].time - pair[0].time < CALM]
        told = [one for one in whole if one.event.alarm == name]  # type: ignore[attr-defined]
        assert told == [one for one in every if not any(one in pair for pair in short)]
        assert [one.type for one in told] == (["AlarmRaised", "AlarmResolved"] * len(told))[: len(told)]
    parts, calm = list[Recorded](), Calm(CALM)
    for one, (_, _, look) in zip(story, moves, strict=True):  # as they come, with looks between
        new, calm = calm.take([one], one.time)
        more, calm = calm.take([], one.time) if look else ([], calm)
        parts += [*new, *more]
    rest, _ = calm.take([], end)
    assert sorted([*parts, *rest], key=lambda one: one.seq) == sorted(whole, key=lambda one: one.seq)


async def test_what_is_held_outlives_its_process_and_comes_without_another_event(
    receiver: Receiver, tmp_path: Path
) -> None:
    story = alarms([(1, "a", True)] * 6)  # raised and resolved three times within seconds
    now = [story[-1].time]

    def another() -> Follower:
        made = follower(tmp_path, 100, webhook_url=receiver.address, webhook_secret="s")
        made._clock = lambda: now[0]
        return made

    stored(tmp_path, story[:4])
    await another().step()
    place = tmp_path / "followers" / "webhook.json"
    before = place.read_text()
    stored(tmp_path, story)
    second = another()
    place.write_text(before)
    await second.step()
    assert [json.loads(body)["seq"] for _, _, body in receiver.got] == [1]
    now[0] += CALM
    receiver.refuses = 1
    with pytest.raises(OSError, match="503"):
        await second.step()
    for _ in range(2):
        await second.step()
    assert [json.loads(body)["seq"] for _, _, body in receiver.got] == [1, 6]


CHATS = [("slack", "text", SLACK_CHARACTERS), ("discord", "content", DISCORD_CHARACTERS)]


@pytest.mark.parametrize(("name", "key", "most"), CHATS)
async def test_a_chat_gets_every_notice_once(
    receiver: Receiver, tmp_path: Path, name: str, key: str, most: int
) -> None:
    """What it refuses comes again; all of it is one message, in which a model's words notify nobody."""
    loud = AlarmRaised(alarm="loud", severity="critical", message="@everyone <!channel> & co\nsay hello")
    story = renumbered([*STORY, record(loud, run=STORY[-1].run, time=STORY[-1].time)])
    found = follower(stored(tmp_path, story), **{f"{name}_url": f"{receiver.address}/hook/token"})
    receiver.refuses = 1
    with pytest.raises(OSError, match="503"):
        await found.step()
    while await found.step():
        pass
    [(path, headers, body)] = receiver.got
    sent = json.loads(body)
    assert path == "/hook/token" and headers["Content-Type"] == "application/json" and SIGNATURE not in headers
    lines = sent[key].splitlines()
    assert len(lines) == sum(e.type in NOTICES for e in story) and lines[-1].startswith(f"{STORY[-1].run}: critical")
    assert sent.keys() - {key} == ({"allowed_mentions"} if name == "discord" else set())
    assert sent.get("allowed_mentions", {"parse": []}) == {"parse": []}
    assert ("<!channel>" in sent[key]) == (name == "discord") and ("&lt;!channel&gt; &amp; co" in lines[-1]) == (
        name == "slack"
    )


@pytest.mark.parametrize(("name", "key", "most"), CHATS)
def test_a_flood_is_one_message_of_the_newest(name: str, key: str, most: int) -> None:
    long = AlarmRaised(alarm="long", severity="info", message="word " * 300)
    told = [record(long, run=STORY[-1].run, time=STORY[-1].time)] * 40 + [STORY[-1]]
    text = json.loads(FORMATS[name](told))[key]
    lines = text.splitlines()
    assert most / 2 < len(text) <= most and "run finished" in lines[-1]
    assert lines[0] == f"{len(told) - len(lines) + 1} earlier notices: agent0 events tail"


def test_a_chat_needs_an_address_and_keeps_it_secret(tmp_path: Path) -> None:
    held = Settings(home=tmp_path, telemetry=TelemetrySettings(slack_url=SecretStr("hooks.example/T0/s3cret")))
    with pytest.raises(ConfigError, match="slack_url is no address") as caught:
        followers(held)
    assert "s3cret" not in str(caught.value) + str(held) + json.dumps(public(held))


async def test_a_new_follower_begins_now(receiver: Receiver, tmp_path: Path) -> None:
    [found] = followers(Settings(home=stored(tmp_path, STORY), telemetry=TelemetrySettings(otlp_url=receiver.address)))
    assert not await found.step() and receiver.got == [] and set(EXPORTED)


async def test_the_log_gets_every_notice_once(tmp_path: Path) -> None:
    [found] = followers(Settings(home=stored(tmp_path, STORY), telemetry=TelemetrySettings(log_json=True, calm_s=0)))
    (tmp_path / "followers").mkdir()
    (tmp_path / "followers" / "log.json").write_text('{"seq": 0}')
    out = io.StringIO()
    with json_logs(out):
        for _ in range(3):
            await found.step()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    notices = [e for e in STORY if e.type in NOTICES]
    assert [(one["run"], one["event"]) for one in lines] == [(e.run, e.seq) for e in notices]
    levels = {one["message"].partition(":")[0]: one["level"] for one in lines}
    assert (levels["AlarmRaised"], levels["RunFinished"]) == ("warning", "info")


def test_a_webhook_needs_a_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no secret"):
        followers(Settings(home=tmp_path, telemetry=TelemetrySettings(webhook_url="http://127.0.0.1:1")))
    assert followers(Settings(home=tmp_path)) == []


def test_logs_are_json_bound_to_what_they_are_about() -> None:
    out = io.StringIO()
    before = logging.getLogger().handlers[:]
    with json_logs(out):
        log = logging.getLogger("agent0.test")
        with about(run="r1", task="t0", attempt="-", event=7, handler="verify_result"):
            log.info("asked http://me:secret@host/ again")
            try:
                raise ValueError("line one\nline two")
            except ValueError:
                log.exception("failed")
        log.warning("apart")
    first, failed, apart = map(json.loads, out.getvalue().splitlines())
    assert {key: first[key] for key in ("run", "task", "event", "handler", "level", "logger")} == {
        "run": "r1", "task": "t0", "event": 7, "handler": "verify_result", "level": "info", "logger": "agent0.test",
    }  # fmt: skip
    assert "secret" not in first["message"] and "attempt" not in first
    assert "line two" in failed["exception"] and "run" not in apart
    assert logging.getLogger().handlers == before


@pytest.mark.parametrize(
    "answer", [b"hello\r\n\r\n", b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"]
)
def test_what_answers_no_http_or_leads_elsewhere_was_not_told(answer: bytes) -> None:
    def reply() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=reply)
        thread.start()
        with pytest.raises(OSError):
            post(f"http://127.0.0.1:{listener.getsockname()[1]}/hook", b"{}", {})
        thread.join()
