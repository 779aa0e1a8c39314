"""A server that speaks OpenAI's API as vLLM does (token ids on request), as an older one (log-probabilities), or as a
strict one (text, unknown fields refused), with a drawn writer behind it. Faults are played on demand, one a request.

Requests are kept as they came, so that tests see what a real server would see.
"""

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

from agent0.chat_format import format_call
from events.values import Turn
from infra.engine.chat_template import Chat, chat_of
from infra.models.tiny import BASE

CALL = format_call("python", {"code": "print(12+30)"})
TEXTS = ("\\boxed{42}", CALL, "It is 12+30.", CALL, "\\boxed{7}")
STRICT = {"model", "messages", "max_tokens", "temperature", "top_p", "seed"}
BROKEN: dict[str, tuple[int, Any]] = {
    "cut": (200, {"choices": ["much more was promised"]}),
    "json": (200, '{"choices": [{"te'),
    "shape": (200, {"choices": [{"message": {"content": "x"}, "text": "x", "logprobs": [1]}]}),
    "full": (503, {"error": {"message": "Loading model", "code": 503}}),
    "down": (500, {"error": {"message": "CUDA error"}}),
}
Fault = Literal["cut", "hang", "json", "shape", "busy", "full", "down", "quote"]


class OpenAIStandIn:
    """``level`` is what it gives; ``faults`` are played in order before it answers again; with ``bos`` it puts a token
    before prompts; with ``native`` it reads calls out of the text although no tools were named; with ``single`` its
    chat template takes one question and nothing after it."""

    def __init__(self, level: str = "tokens", models: tuple[str, ...] = ("student",), key: str = "") -> None:
        self.level, self.models, self.key, self.bos = level, models, key, False
        self.after, self.faults, self.native, self.single = "0.001", list[Fault](), False, False
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.chat: Chat = chat_of(Path(BASE))
        self.hung = threading.Event()
        self.url = ""

    def answer(self, method: str, path: str, body: dict[str, Any], key: str) -> tuple[int, Any]:
        """Status and body of an answer."""
        if self.key and key != f"Bearer {self.key}":
            return 401, {"error": {"message": f"Incorrect API key provided: {key}", "type": "invalid_request_error"}}
        if (method, path) == ("GET", "/v1/models"):
            return 200, {"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]}
        if path == "/detokenize" and self.level == "tokens":
            spelt = self.chat._trusted.decode(body["tokens"], skip_special_tokens=False)
            return 200, {"prompt": spelt}
        if path not in ("/v1/completions", "/v1/chat/completions"):
            return 404, {"detail": "Not Found"}
        if body["model"] not in self.models:
            return 404, {"error": {"message": f"The model `{body['model']}` does not exist."}}
        if self.level == "text" and (unknown := set(body) - STRICT or path == "/v1/completions"):
            return 400, {"error": {"message": f"Unrecognized request argument supplied: {unknown}"}}
        if self.single and len(body.get("messages", ())) > 1:
            return 400, {"error": {"message": "Conversation roles must be one user"}}
        return 200, self._written(path, body)

    def _written(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        chat = path.endswith("chat/completions")
        turns = [Turn(role=m["role"], content=m["content"]) for m in body.get("messages", ())]
        prompt = self.chat.prompt(turns) if chat else [*([0] if self.bos else []), *body["prompt"]]
        rng = random.Random(f"{prompt} {body['seed'] if body['temperature'] else 'greedy'}")
        ids = [*self.chat.written(rng.choice(TEXTS)), self.chat.stop]
        cut = len(ids) > body["max_tokens"]
        ids = ids[: body["max_tokens"]]
        text = self.chat.decode(ids)
        ends = self.chat.ends(ids)
        pieces = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        logprobs = [-rng.random() for _ in ids]
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length" if cut else "stop"}
        choice |= {"message": self._message(text)} if chat else {"text": text}
        if self.level != "text" and body.get("logprobs") is not None:
            each = [{"token": t, "logprob": p, "top_logprobs": []} for t, p in zip(pieces, logprobs, strict=True)]
            choice["logprobs"] = {"content": each} if chat else {"token_logprobs": logprobs, "tokens": pieces}
        reply = {"model": body["model"], "choices": [choice]}
        if self.level == "tokens" and body.get("return_token_ids"):
            choice["token_ids"] = ids
            (reply if chat else choice)["prompt_token_ids"] = prompt
        return reply | {"usage": {"prompt_tokens": len(prompt), "completion_tokens": len(ids)}}

    def _message(self, text: str) -> dict[str, Any]:
        """Complete calls are read out of the text by a server with a parser."""
        said, mark, call = text.partition("<tool_call>")
        if not mark or "</tool_call>" not in call or not self.native:
            return {"role": "assistant", "content": text}
        found = json.loads(call.partition("</tool_call>")[0])
        function = {"name": found["name"], "arguments": json.dumps(found["arguments"])}
        return {"role": "assistant", "content": said, "tool_calls": [{"type": "function", "function": function}]}


class _Server(ThreadingHTTPServer):
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    server_of: OpenAIStandIn
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer("GET", {})

    def do_POST(self) -> None:
        self._answer("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, method: str, body: dict[str, Any]) -> None:
        there = self.server_of
        there.asked.append((self.path, body))
        if there.faults and method == "POST":
            self._fail(there.faults.pop(0), body)
        else:
            self._send(*there.answer(method, self.path, body, self.headers.get("Authorization", "")))

    def _fail(self, fault: Fault, body: dict[str, Any]) -> None:
        there = self.server_of
        match fault:
            case "hang":
                there.hung.wait()
                self.close_connection = True
            case "busy":
                self._send(429, {"error": {"message": "Too many requests"}}, after=there.after)
            case "quote":
                self._send(400, {"error": {"message": f"Input should be shorter: {json.dumps(body['messages'])}"}})
            case _:
                self._send(*BROKEN[fault], missing=1000 if fault == "cut" else 0)

    def _send(self, status: int, body: Any, after: str = "", missing: int = 0) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data) + missing))
            if after:
                self.send_header("Retry-After", after)
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.close_connection = self.close_connection or bool(missing)

    def log_message(self, format: str, *args: object) -> None:
        """Tests read ``asked`` instead."""


@contextmanager
def serving(**options: Any) -> Iterator[OpenAIStandIn]:
    """A server on a free loopback port."""
    there = OpenAIStandIn(**options)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"server_of": there}))
    server.daemon_threads = True
    there.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield there
    finally:
        there.hung.set()
        server.shutdown()
        server.server_close()
        thread.join()
