"""A server that speaks Anthropic's Messages API as it is documented: named server-sent events, typed blocks, usage at
both ends, typed errors, rate limits in headers. Faults are played on demand, one a request."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.loopback import listening

Part = dict[str, Any]
ERRORS: Mapping[str, tuple[int, str]] = {
    "key": (401, "authentication_error"),
    "model": (404, "not_found_error"),
    "long": (400, "invalid_request_error"),
    "unpaid": (402, "billing_error"),
    "busy": (429, "rate_limit_error"),
    "overloaded": (529, "overloaded_error"),
    "down": (500, "api_error"),
}
LIMITS = {
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-requests-remaining": "49",
    "anthropic-ratelimit-requests-reset": "2026-11-20T12:00:30Z",
    "request-id": "req_1",
}
READ = {"input_tokens": 200, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 0}


class AnthropicStandIn:
    """``blocks`` are what it writes: text, or (name, arguments as JSON) of a tool call. ``faults`` are played in order
    before it answers again; ``gone`` is set when a caller closed its connection."""

    def __init__(self, model: str = "claude-sonnet-4-5-20250929", key: str = "sk-ant-test") -> None:
        self.model, self.key = model, key
        self.blocks: list[str | tuple[str, str]] = ["It is 42."]
        self.stop, self.after = "end_turn", "0.001"
        self.faults: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.hung, self.gone, self.writing = threading.Event(), threading.Event(), threading.Event()
        self.url, self.limits = "", LIMITS

    def parts(self, fault: str) -> Iterator[Part]:
        """The events of an answer; ``no usage``: its end counts nothing; ``odd usage``: no number."""
        usage = READ | {"output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model, "content": []}
        yield {"type": "message_start", "message": message | {"stop_reason": None, "usage": usage}}
        yield {"type": "ping"}
        for index, block in enumerate(self.blocks):
            yield from self._block(index, block)
        told: Part = {"type": "message_delta", "delta": {"stop_reason": self.stop, "stop_sequence": None}}
        counts = {"output_tokens": "many" if fault == "odd usage" else 200}
        yield told if fault == "no usage" else told | {"usage": counts}
        yield {"type": "message_stop"}

    def _block(self, index: int, block: str | tuple[str, str]) -> Iterator[Part]:
        if isinstance(block, str):
            start, deltas = {"type": "text", "text": ""}, [("text_delta", "text", piece) for piece in halves(block)]
        else:
            start = {"type": "tool_use", "id": "toolu_1", "name": block[0], "input": {}}
            deltas = [("input_json_delta", "partial_json", piece) for piece in halves(block[1])]
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for kind, name, piece in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: piece}}
        yield {"type": "content_block_stop", "index": index}


def halves(text: str) -> list[str]:
    """Two pieces, as a stream has them."""
    return [text[: len(text) // 2], text[len(text) // 2 :]]


class _Handler(BaseHTTPRequestHandler):
    there: AnthropicStandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        there = self.there
        there.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        there.headers.append({name.lower(): value for name, value in self.headers.items()})
        fault = there.faults.pop(0) if there.faults else ""
        if self.path != "/v1/messages":
            fault = "model"
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if there.key not in (self.headers.get("x-api-key"), bearer):
            fault = "key"
        if fault in ERRORS:
            self._refuse(*ERRORS[fault])
        elif fault == "hang":
            there.writing.set()
            there.hung.wait()
            self.close_connection = True
        else:
            self._stream(fault)

    def _refuse(self, status: int, kind: str) -> None:
        said = {"type": "error", "error": {"type": kind, "message": f"about {self.there.asked[-1]['messages']}"}}
        data = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status in (429, 529):
            self.send_header("Retry-After", self.there.after)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, fault: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        for name, value in self.there.limits.items():
            self.send_header(name, value)
        self.end_headers()
        for number, part in enumerate(self.there.parts(fault)):
            if fault == "slow" and number == 4:
                self._wait_until_gone()
                return
            if fault in ("cut", "error") and number == 4:
                break
            self._event(part)
        if fault == "error":
            self._event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
        if fault == "cut":
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def _wait_until_gone(self) -> None:
        """In the middle of an answer, until the caller closes the connection."""
        self.there.writing.set()
        if not self.connection.recv(1):
            self.there.gone.set()
        self.close_connection = True

    def _event(self, part: Part) -> None:
        data = f"event: {part['type']}\ndata: {json.dumps(part)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


@contextmanager
def serving(**options: Any) -> Iterator[AnthropicStandIn]:
    """A server on a free loopback port."""
    there = AnthropicStandIn(**options)
    with listening(_Handler, there=there) as server:
        there.url = server.url
        try:
            yield there
        finally:
            there.hung.set()
