"""What other systems are told: spans to a collector, notices to a webhook, logs as JSON. Both receivers are real."""

import io
import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent0.assembly.telemetry.chat_messages import DISCORD_CHARACTERS, SLACK_CHARACTERS
from agent0.assembly.telemetry.followers import CHATS as FORMATS
from agent0.assembly.telemetry.followers import NOTICES, SIGNATURE, Follower, followers, signature
from agent0.assembly.telemetry.spans import TOLD
from agent0.config.loading import public
from agent0.errors import ConfigError
from agent0.settings import Settings, TelemetrySettings
from events.alarms import AlarmRaised
from events.base import record
from infra.telemetry.json_logs import about, json_logs
from tests.api.served import stored
from tests.story import renumbered, whole_run

STORY = whole_run(iterations=1, tasks=2, attempts=2)


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

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    held.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, name="receiver")
    thread.start()
    yield held
    server.shutdown()
    thread.join()
    server.server_close()


def follower(home: Path, **telemetry: str) -> Follower:
    """One that begins before the first event."""
    [found] = followers(Settings(home=home, telemetry=TelemetrySettings(**telemetry)))
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
    stored(tmp_path, [*STORY, STORY[-1].model_copy(update={"seq": len(STORY) + 1, "id": "again"})])
    await found.step()  # another one of its kind goes on where it was
    assert len(receiver.got) == len(told) + 1


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
    assert not await found.step() and receiver.got == [] and set(TOLD)


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
