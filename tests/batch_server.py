"""A server that speaks Anthropic's Message Batches and OpenAI's batches (with their files) as they are documented.

A batch is worked on until it was looked at ``looks`` times. ``faults`` are by place in the batch: ``errored`` or
``expired``, ``no usage``, ``searches`` (a count of what was not asked for); ``refuse`` is the status of the next
request; ``failed``: OpenAI's batches fail as a whole; ``more``: every answer comes twice, and as many of others.
Anthropic's batches name a place of their results that is not this server.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.loopback import listening

Part = dict[str, Any]
WHEN = "2026-11-20T12:00:00Z"


class BatchStandIn:
    """Answers request n with ``text``, or ``answer n``: 1000 tokens read and 100 written, each."""

    def __init__(self) -> None:
        self.looks, self.refuse, self.text, self.failed, self.more = 1, 0, "", False, False
        self.faults: dict[int, str] = {}
        self.batches: dict[str, list[Part]] = {}
        self.files: dict[str, str] = {}
        self.looked: dict[str, int] = {}
        self.url = ""

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        if self.refuse:
            status, self.refuse = self.refuse, 0
            return status, {"type": "error", "error": {"type": "authentication_error", "message": "no"}}
        words = path.removeprefix("/v1/").split("/")
        found = self._of_anthropic(method, words, body) or self._of_openai(method, words, body)
        return (200, found) if found else (404, {"error": {"type": "not_found_error", "message": path}})

    def _of_anthropic(self, method: str, words: list[str], body: bytes) -> Any:
        match method, words:
            case "POST", ["messages", "batches"]:
                return self._anthropic(self._taken("msgbatch", json.loads(body)["requests"]))
            case "GET", ["messages", "batches", name]:
                self.looked[name] += 1
                return self._anthropic(name)
            case "GET", ["messages", "batches", name, "results"]:
                return self._lines(map(self._anthropic_result, range(10**6), self.batches[name]))
        return None

    def _of_openai(self, method: str, words: list[str], body: bytes) -> Any:
        match method, words:
            case "POST", ["files"]:  # the parts of the form are purpose and file, in either order
                jsonl = next(one for one in body.split(b"\r\n\r\n") if one.startswith(b'{"custom_id"'))
                return self._file(jsonl.split(b"\r\n--")[0].decode(), "batch")
            case "POST", ["batches"]:
                held = self.files[json.loads(body)["input_file_id"]]
                return self._openai(self._taken("batch", [json.loads(line) for line in held.splitlines()]))
            case "GET", ["batches", name]:
                self.looked[name] += 1
                return self._openai(name)
            case "GET", ["files", name, "content"]:
                return self.files[name]
        return None

    def _taken(self, prefix: str, requests: list[Part]) -> str:
        name = f"{prefix}_{len(self.batches)}"
        self.batches[name], self.looked[name] = requests, 0
        return name

    def _file(self, text: str, purpose: str) -> Part:
        name = f"file-{len(self.files)}"
        self.files[name] = text
        held = {"id": name, "object": "file", "bytes": len(text), "created_at": 0, "filename": "f.jsonl"}
        return held | {"purpose": purpose, "status": "processed"}

    def _anthropic(self, name: str) -> Part:
        ended = self.looked[name] >= self.looks
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        return {
            "id": name, "type": "message_batch", "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts, "created_at": WHEN, "expires_at": WHEN, "archived_at": None,
            "cancel_initiated_at": None, "ended_at": WHEN if ended else None,
            "results_url": "http://127.0.0.1:1/v1/elsewhere" if ended else None,
        }  # fmt: skip

    def _anthropic_result(self, place: int, request: Part) -> Part:
        assert "stream" not in request["params"]
        fault = self.faults.get(place, "")
        if fault == "errored":
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": "m"}, "request_id": None}
            return {"custom_id": request["custom_id"], "result": {"type": "errored", "error": error}}
        if fault == "expired":
            return {"custom_id": request["custom_id"], "result": {"type": "expired"}}
        usage: Part = {} if fault == "no usage" else {"input_tokens": 1000, "output_tokens": 100}
        if fault == "searches":
            usage["server_tool_use"] = {"web_search_requests": 200_000}
        message = {
            "id": f"msg_{place}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
            "content": [{"type": "text", "text": self.text or f"answer {place}"}], "stop_reason": "end_turn",
            "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        return {"custom_id": request["custom_id"], "result": {"type": "succeeded", "message": message}}

    def _openai(self, name: str) -> Part:
        ended = self.looked[name] >= self.looks
        held: Part = {
            "id": name, "object": "batch", "endpoint": "/v1/chat/completions", "completion_window": "24h",
            "input_file_id": "file-0", "created_at": 0, "status": "completed" if ended else "in_progress",
        }  # fmt: skip
        if ended and self.failed:
            told = {"object": "list", "data": [{"code": "invalid_json_line", "message": "not JSON", "line": 1}]}
            return held | {"status": "failed", "errors": told}
        if ended:
            rows = [*map(self._openai_result, range(10**6), self.batches[name])]
            good = [row for row in rows if row["response"] and row["response"]["status_code"] == 200]
            held["output_file_id"] = self._file(self._lines(iter(good)), "batch_output")["id"]
            if bad := [row for row in rows if row not in good]:
                held["error_file_id"] = self._file(self._lines(iter(bad)), "batch_output")["id"]
        return held

    def _openai_result(self, place: int, request: Part) -> Part:
        assert request["method"] == "POST" and request["url"] == "/v1/chat/completions"
        fault, row = self.faults.get(place, ""), {"id": f"r{place}", "custom_id": request["custom_id"]}
        if fault == "expired":
            return {**row, "response": None, "error": {"code": "batch_expired", "message": "m"}}
        if fault == "errored":
            error = {"error": {"type": "invalid_request_error", "message": "m"}}
            return {**row, "response": {"status_code": 400, "request_id": "q", "body": error}, "error": None}
        body: Part = {
            "id": "c", "object": "chat.completion", "created": 0, "model": "gpt-4o-2024-08-06",
            "choices": [{"index": 0, "finish_reason": "stop",
                         "message": {"role": "assistant", "content": self.text or f"answer {place}"}}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
        }  # fmt: skip
        if fault == "no usage":
            del body["usage"]
        return {**row, "response": {"status_code": 200, "request_id": "q", "body": body}, "error": None}

    def _lines(self, rows: Iterator[Part]) -> str:
        """In reverse: vendors promise no order."""
        answers = [*rows]
        if self.more:
            answers = [*(row | {"custom_id": f"other-{n}"} for n, row in enumerate(answers)), *answers, *answers]
        return "".join(json.dumps(row) + "\n" for row in reversed(answers))


class _Handler(BaseHTTPRequestHandler):
    there: BatchStandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer("GET", b"")

    def do_POST(self) -> None:
        self._answer("POST", self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, method: str, body: bytes) -> None:
        status, found = self.there.answer(method, self.path, body)
        lines = isinstance(found, str)
        data = (found if lines else json.dumps(found)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-jsonl" if lines else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Callers may go."""


@contextmanager
def serving() -> Iterator[BatchStandIn]:
    """A server on a free port of the loopback."""
    there = BatchStandIn()
    with listening(_Handler, _Server, there=there) as server:
        there.url = server.url
        yield there
