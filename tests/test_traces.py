"""Every message of the log carries the trace of its attempt, the one that its spans have."""

import re
from contextlib import aclosing

import pytest

from agent0.assembly.telemetry.spans import otlp, spans_of
from agent0.events.base import TRACE_HEADER
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server
from agent0.infra.log.reader import Query, pull
from agent0.infra.log.restore import restore
from tests.story import bodies, whole_run

STORY = whole_run(iterations=1, tasks=1, attempts=2)


async def headers(log: Log) -> list[str]:
    found: list[str] = []
    async with aclosing(pull(log._link, Query(("a0.ev.>",), 0, headers_only=True))) as chunks:
        async for chunk in chunks:
            found += [(one.message.headers or {})[TRACE_HEADER] for one in chunk]
    return found


@pytest.mark.parametrize("way", ["appended", "restored"])
async def test_messages_and_spans_share_a_trace(log: Log, nats_server: Server, way: str) -> None:
    if way == "appended":
        await log.append(STORY)
    else:
        assert await restore(nats_server, [bodies(STORY)]) == len(STORY)
    given = await headers(log)
    assert len(given) == len(STORY)
    assert all(re.fullmatch("00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01", one) for one in given)
    assert len(set(given)) == len({(e.run, e.task, e.attempt) for e in STORY})
    spanned = [(one, spans_of(e)) for one, e in zip(given, STORY, strict=True) if spans_of(e)]
    assert len(spanned) > 5
    for one, spans in spanned:
        told = otlp(spans, "0")["resourceSpans"][0]["scopeSpans"][0]["spans"]
        _, trace, parent, _ = one.split("-")
        assert {(span["traceId"], span.get("parentSpanId", parent)) for span in told} == {(trace, parent)}
        assert spans[0].root == (parent == told[0]["spanId"])
