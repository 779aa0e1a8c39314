"""Events as spans by OpenTelemetry's conventions for generative AI, in OTLP's JSON. All names that the conventions give
are here, since they are not stable yet. Nothing is measured twice: the log is the trace.

A trace is an attempt. Ids follow from those of events, so what is sent again is the same span. Prompts, answers and
outputs of tools are not sent.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from agent0.events.base import Recorded, sha256, trace_of
from agent0.events.models import ModelCalled
from agent0.events.tasks import ResultVerified, TaskAttempted, ToolCalled
from agent0.events.values import ToolState, Usage
from agent0.projections.wording import describe

SERVICE, SCOPE = "agent0", "agent0.events"
OPERATION, AGENT, PROVIDER = "gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.provider.name"
ASKED, SERVED = "gen_ai.request.model", "gen_ai.response.model"
READ, WRITTEN = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
FINISH = "gen_ai.response.finish_reasons"
TOOL, CALL = "gen_ai.tool.name", "gen_ai.tool.call.id"
EVALUATION, LABEL, SCORE = "gen_ai.evaluation.name", "gen_ai.evaluation.score.label", "gen_ai.evaluation.score.value"
INTERNAL, CLIENT = 1, 3
OK, ERROR = 1, 2
Value = str | int | float | list[str]


@dataclass(frozen=True)
class Span:
    """A span: ``end`` is when its event was written, in nanoseconds since 1970; ``took_s`` how long it lasted."""

    name: str
    of: Recorded
    took_s: float
    attributes: Mapping[str, Value]
    kind: int = INTERNAL
    failed: str = ""
    root: bool = False
    part: str = ""
    """Distinguishes the spans of one event."""


def spans_of(recorded: Recorded) -> list[Span]:
    """The spans that follow from ``recorded``; none for most classes."""
    make_spans = _MADE.get(recorded.type)
    return make_spans(recorded, recorded.event) if make_spans else []


def _attempted(e: Recorded, x: TaskAttempted) -> list[Span]:
    used = _usage(x.usage)
    agent = {OPERATION: "invoke_agent", AGENT: f"student {x.student}", SERVED: x.model, **used}
    chat = {OPERATION: "chat", SERVED: x.model, **used, "agent0.turns": x.turns}
    failed = "" if x.end == "answered" else x.end
    whole = Span(f"invoke_agent student {x.student}", e, x.wall_s, agent, failed=failed, root=True)
    return [whole, Span(f"chat {x.model}".strip(), e, x.usage.wall_s, chat, CLIENT, part="chat")]


def _called(e: Recorded, x: ToolCalled) -> list[Span]:
    attributes = {OPERATION: "execute_tool", TOOL: x.call.name or "unparsed", CALL: f"{e.attempt}#{x.number}"}
    failed = "" if x.result.state is ToolState.OK else x.result.state.value
    return [Span(f"execute_tool {attributes[TOOL]}", e, x.result.wall_s, attributes, failed=failed)]


def _model_called(e: Recorded, x: ModelCalled) -> list[Span]:
    attributes: dict[str, Value] = {
        OPERATION: "chat",
        PROVIDER: x.provider,
        ASKED: x.requested_model or x.model,
        SERVED: x.model,
    }
    attributes |= {FINISH: [x.finish], **_usage(x.usage), "agent0.role": x.role}
    failed = "error" if x.finish == "error" else ""
    return [Span(f"chat {x.requested_model or x.model}", e, x.usage.wall_s, attributes, CLIENT, failed)]


def _judged(e: Recorded, x: ResultVerified) -> list[Span]:
    label = {True: "correct", False: "wrong", None: "undecided"}[x.correct]
    attributes: dict[str, Value] = {OPERATION: "evaluation", EVALUATION: x.verifier, LABEL: label}
    score: dict[str, Value] = {} if x.correct is None else {SCORE: float(x.correct)}
    return [Span(f"evaluation {x.verifier}", e, 0.0, attributes | score)]


_MADE: dict[str, Callable[[Recorded, Any], list[Span]]] = {
    "TaskAttempted": _attempted,
    "ToolCalled": _called,
    "ModelCalled": _model_called,
    "ResultVerified": _judged,
}
EXPORTED = tuple(_MADE)
"""Event classes that have spans."""


def _usage(usage: Usage) -> dict[str, Value]:
    return {READ: usage.prompt_tokens, WRITTEN: usage.completion_tokens}


def otlp(spans: Iterable[Span], version: str) -> dict[str, object]:
    """The body of one request of OTLP/HTTP with ``spans``, as JSON has it."""
    resource = _attributes({"service.name": SERVICE, "service.version": version})
    scope = {"scope": {"name": SCOPE, "version": version}, "spans": [_as_json(span) for span in spans]}
    return {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [scope]}]}


def _as_json(span: Span) -> dict[str, object]:
    e = span.of
    trace, root = trace_of(e.run, e.task, e.attempt)
    end = _nanoseconds(e)
    attributes: dict[str, Value] = {
        "agent0.run": e.run,
        "agent0.task": e.task,
        "agent0.attempt": e.attempt,
        "agent0.event": e.seq,
    }
    status = {"code": ERROR, "message": span.failed} if span.failed else {"code": OK}
    return {
        "traceId": trace,
        "spanId": root if span.root else sha256(f"{e.id}/{span.part}")[:16],
        **({} if span.root else {"parentSpanId": root}),
        "name": span.name[:200],
        "kind": span.kind,
        "startTimeUnixNano": str(end - round(span.took_s * 1e9)),
        "endTimeUnixNano": str(end),
        "attributes": _attributes({**span.attributes, **attributes}),
        "status": status,
    }


def _nanoseconds(e: Recorded) -> int:
    since = e.time - e.time.replace(year=1970, month=1, day=1, hour=0, minute=0, second=0, microsecond=0)
    return (since // timedelta(microseconds=1)) * 1000


def _attributes(attributes: Mapping[str, Value]) -> list[dict[str, object]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items() if value not in ("", "-")]


def _value(value: Value) -> dict[str, object]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [{"stringValue": item} for item in value]}}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


SLACK_CHARACTERS, DISCORD_CHARACTERS = 4000, 2000
"""Slack recommends to keep a text below the one and cuts it at ten times as much; Discord refuses more than the other.
https://docs.slack.dev/reference/methods/chat.postMessage, https://docs.discord.com/developers/resources/webhook"""
LINE_CHARACTERS = 500
Message = Callable[[Sequence[Recorded]], bytes]


def slack_message(news: Sequence[Recorded]) -> bytes:
    """Make the JSON body for a Slack channel that is notified of ``news``. What models wrote mentions no person: the
    characters that make Slack's own marks are escaped, as Slack asks."""
    lines = [_line(stored).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for stored in news]
    return json.dumps({"text": _within(lines, SLACK_CHARACTERS)}).encode()


def discord_message(news: Sequence[Recorded]) -> bytes:
    """Make the JSON body for a Discord channel that is notified of ``news``; it mentions no person."""
    text = _within([_line(stored) for stored in news], DISCORD_CHARACTERS)
    return json.dumps({"content": text, "allowed_mentions": {"parse": []}}).encode()


def _line(stored: Recorded) -> str:
    text = " ".join(f"{stored.run}: {describe(stored)}".split())
    return text if len(text) <= LINE_CHARACTERS else f"{text[: LINE_CHARACTERS - 1]}…"


def _within(lines: Sequence[str], most: int) -> str:
    """The newest ``lines`` that fit, oldest first, behind the number of those left out."""
    kept: list[str] = []
    room = most - len(f"{len(lines)} earlier notices: agent0 events tail")
    for line in reversed(lines):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    left = len(lines) - len(kept)
    return "\n".join([*([f"{left} earlier notices: agent0 events tail"] if left else []), *reversed(kept)])
