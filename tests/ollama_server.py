"""A server that speaks Ollama's documented wire format (docs/api.md of ollama/ollama), with a scripted model behind it.

Requests are kept as they came over the wire, so that tests see what a real server would see.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agent0.ports import Artifacts, GenerateRequest, Sampling
from events.values import Turn
from infra.models.scripted import Scripted, decode

CREATED = "2026-01-01T00:00:00.000000Z"


@dataclass
class OllamaServer:
    """Where it listens, what it has and what it was asked. ``fail`` is a status that every chat then ends with."""

    artifacts: Artifacts
    url: str = ""
    models: tuple[str, ...] = ("qwen2.5:3b", "qwen2.5:7b")
    offers_logprobs: bool = True
    fail: int = 0
    stall: threading.Event | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)

    def chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """POST /api/chat."""
        self.asked.append(body)
        if self.stall:
            self.stall.wait(20)
        if self.fail:
            return self.fail, {"error": "made to fail"}
        if body["model"] not in self.models:
            return 404, {"error": f"model '{body['model']}' not found"}
        options = body.get("options", {})
        sampling = Sampling(
            temperature=options.get("temperature", 0.8),
            top_p=options.get("top_p", 0.9),
            max_tokens=options.get("num_predict", 128),
            seed=options.get("seed", 0),
        )
        turns = tuple(Turn(role=m["role"], content=m.get("content") or "") for m in body["messages"])
        written = asyncio.run(Scripted(self.artifacts).generate(GenerateRequest(turns, sampling)))
        reply = {
            "model": body["model"],
            "created_at": CREATED,
            "message": _message(written.text, bool(body.get("tools"))),
            "done": True,
            "done_reason": written.finish,
            "total_duration": 5_000_000,
            "load_duration": 1_000_000,
            "prompt_eval_count": len(written.prompt_ids),
            "prompt_eval_duration": 1_000_000,
            "eval_count": len(written.token_ids),
            "eval_duration": 3_000_000,
        }
        if body.get("logprobs") and self.offers_logprobs:
            reply["logprobs"] = [
                {"token": decode([i]), "logprob": value, "bytes": list(decode([i]).encode())}
                for i, value in zip(written.token_ids, written.logprobs, strict=True)
            ]
        return 200, reply

    def show(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """POST /api/show."""
        if body["model"] not in self.models:
            return 404, {"error": f"model '{body['model']}' not found"}
        return 200, {
            "modelfile": "# Modelfile",
            "parameters": "",
            "template": "{{ .Prompt }}",
            "details": self._details(body["model"]),
            "model_info": {"general.architecture": "qwen2", "qwen2.context_length": 32768},
            "capabilities": ["completion", "tools"],
        }

    def tags(self) -> dict[str, Any]:
        """GET /api/tags."""
        return {
            "models": [
                {"name": m, "model": m, "modified_at": CREATED, "size": 1, "digest": "0", "details": self._details(m)}
                for m in self.models
            ]
        }

    def loaded(self) -> dict[str, Any]:
        """GET /api/ps."""
        used = sorted({body["model"] for body in self.asked})
        return {"models": [{"name": m, "model": m, "size": 1, "digest": "0", "expires_at": CREATED} for m in used]}

    @staticmethod
    def _details(model: str) -> dict[str, Any]:
        size = model.partition(":")[2].upper()
        return {"format": "gguf", "family": "qwen2", "parameter_size": size, "quantization_level": "Q4_K_M"}


def _message(text: str, tools: bool) -> dict[str, Any]:
    """A server reads complete calls out of the text when tools were given, and leaves broken ones in it."""
    content, *bodies = text.split("<tool_call>")
    if not tools or not bodies or any("</tool_call>" not in body for body in bodies):
        return {"role": "assistant", "content": text}
    calls = [{"function": json.loads(body.partition("</tool_call>")[0])} for body in bodies]
    return {"role": "assistant", "content": content, "tool_calls": calls}


class _Server(ThreadingHTTPServer):
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    ollama: OllamaServer

    def do_GET(self) -> None:
        answers = {
            "/api/version": {"version": "0.12.11"},
            "/api/tags": self.ollama.tags(),
            "/api/ps": self.ollama.loaded(),
        }
        found = answers.get(self.path)
        self._send(200 if found else 404, found or {"error": "not found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        routes = {"/api/chat": self.ollama.chat, "/api/show": self.ollama.show}
        self._send(*(routes[self.path](body) if self.path in routes else (404, {"error": "not found"})))

    def _send(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Tests read ``asked`` instead."""


@contextmanager
def serving(artifacts: Artifacts, **options: Any) -> Iterator[OllamaServer]:
    """A server on a free loopback port."""
    ollama = OllamaServer(artifacts, **options)
    handler = type("Handler", (_Handler,), {"ollama": ollama})
    server = _Server(("127.0.0.1", 0), handler)
    ollama.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield ollama
    finally:
        if ollama.stall:
            ollama.stall.set()
        server.shutdown()
        server.server_close()
        thread.join()
