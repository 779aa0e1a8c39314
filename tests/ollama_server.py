"""A server that speaks Ollama's documented wire format (docs/api.md of ollama/ollama), with a scripted model behind it.

Blobs are kept in memory under their digest, and models are made from them as the real one's handlers do: which fields
are refused depends on the version that it says it is.

Requests are kept as they came over the wire, so that tests see what a real server would see.
"""

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agent0.ports.models import GenerateRequest, Sampling
from agent0.ports.storage import Artifacts
from events.values import Turn
from infra.models.scripted import Scripted, decode

CREATED = "2026-01-01T00:00:00.000000Z"
Writes = Callable[[str, str, int], tuple[str, list[tuple[str, float]]]]
"""Model, prompt and most tokens to the text that it goes on with, and its tokens with their log-probabilities."""
ADAPTERS_GONE = (0, 34, 1)


@dataclass
class OllamaServer:
    """Where it listens, what it has and what it was asked. ``fail`` is a status that every chat then ends with."""

    artifacts: Artifacts
    url: str = ""
    models: tuple[str, ...] = ("qwen2.5:3b", "qwen2.5:7b")
    offers_logprobs: bool = True
    fail: int = 0
    stall: threading.Event | None = None
    version: str = "0.12.11"
    writes: Writes | None = None
    renders: Callable[[list[dict[str, Any]]], str] | None = None
    infos: dict[str, dict[str, Any]] = field(default_factory=dict)
    """More of a model's ``model_info``."""
    spoils: bool = False
    """Whether what is handed over arrives damaged."""
    blobs: dict[str, bytes] = field(default_factory=dict)
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """POST /api/chat; with ``_debug_render_only`` the prompt alone."""
        self.asked.append(body)
        if body.get("_debug_render_only") and self.renders and body["model"] in self.made:
            info = {"_debug_info": {"rendered_template": self.renders(body["messages"])}}
            return 200, {"model": body["model"], "created_at": CREATED, **info}
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

    def generate(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """POST /api/generate, raw only."""
        self.asked.append(body)
        if body["model"] not in (*self.models, *self.made):
            return 404, {"error": f"model '{body['model']}' not found"}
        if not body.get("raw") or self.writes is None:
            return 400, {"error": "this server continues raw prompts only"}
        text, tokens = self.writes(body["model"], body["prompt"], body["options"]["num_predict"])
        reply = {"model": body["model"], "created_at": CREATED, "response": text, "done": True, "done_reason": "stop"}
        if body.get("logprobs") and self.offers_logprobs:
            reply["logprobs"] = [
                {"token": t, "logprob": v, "top_logprobs": [{"token": t, "logprob": v}]} for t, v in tokens
            ]
        return 200, reply

    def blob(self, digest: str, content: bytes) -> tuple[int, dict[str, Any]]:
        """POST /api/blobs/:digest: 201, or 400 where the content has another digest."""
        if digest in self.blobs:
            return 200, {}
        found = f"sha256:{hashlib.sha256(content[:-1] if self.spoils else content).hexdigest()}"
        if found != digest:
            return 400, {"error": f'digest mismatch, expected "{digest}", got "{found}"'}
        self.blobs[digest] = content
        return 201, {}

    def create(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """POST /api/create: from another model or from files, with adapters where this version takes them."""
        self.asked.append(body)
        adapters, files = body.get("adapters") or {}, body.get("files") or {}
        if adapters and tuple(map(int, self.version.split("-")[0].split("."))) >= ADAPTERS_GONE:
            return 400, {"error": "LoRA adapters are no longer supported"}
        if not body.get("from") and not files:
            return 400, {"error": "neither 'from' or 'files' was specified"}
        if body.get("from") and body["from"] not in self.models:
            return 404, {"error": f"model '{body['from']}' not found"}
        if len(adapters) > 1:
            return 400, {"error": "only one adapter is currently supported"}
        for digest in (*files.values(), *adapters.values()):
            if not self.blobs.get(digest, b"").startswith(b"GGUF"):
                return 400, {"error": "supplied file was not in GGUF format"}
        self.made[body["model"]] = body
        return 200, {"status": "success"}

    def show(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """POST /api/show."""
        if body["model"] in self.made:
            return 200, self._shown(self.made[body["model"]])
        if body["model"] not in self.models:
            return 404, {"error": f"model '{body['model']}' not found"}
        return 200, {
            "modelfile": "# Modelfile",
            "parameters": "",
            "template": "{{ .Prompt }}",
            "details": self._details(body["model"]),
            "model_info": {
                "general.architecture": "qwen2",
                "qwen2.context_length": 32768,
                **self.infos.get(body["model"], {}),
            },
            "capabilities": ["completion", "tools"],
        }

    def _shown(self, made: dict[str, Any]) -> dict[str, Any]:
        """Of a model that was made here: its files by the paths of their blobs."""
        base = next(iter((made.get("files") or {}).values()), "sha256:" + "0" * 64)
        lines = ['# Modelfile generated by "ollama show"', f"FROM /root/.ollama/models/blobs/{base.replace(':', '-')}"]
        for digest in (made.get("adapters") or {}).values():
            lines.append(f"ADAPTER /root/.ollama/models/blobs/{digest.replace(':', '-')}")
        details = {"parent_model": made.get("from", ""), "format": "gguf", "family": "qwen2"}
        return {
            "modelfile": "\n".join(lines),
            "template": made.get("template", ""),
            "details": details,
            "model_info": {},
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
            "/api/version": {"version": self.ollama.version},
            "/api/tags": self.ollama.tags(),
            "/api/ps": self.ollama.loaded(),
        }
        found = answers.get(self.path)
        self._send(200 if found else 404, found or {"error": "not found"})

    def do_HEAD(self) -> None:
        digest = self.path.removeprefix("/api/blobs/")
        self.send_response(200 if digest in self.ollama.blobs else 404)
        self.end_headers()

    def do_POST(self) -> None:
        content = self._content()
        if self.path.startswith("/api/blobs/"):
            self._send(*self.ollama.blob(self.path.removeprefix("/api/blobs/"), content))
            return
        body = json.loads(content)
        routes = {
            "/api/chat": self.ollama.chat,
            "/api/show": self.ollama.show,
            "/api/generate": self.ollama.generate,
            "/api/create": self.ollama.create,
        }
        self._send(*(routes[self.path](body) if self.path in routes else (404, {"error": "not found"})))

    def _content(self) -> bytes:
        """The request's body; what is streamed comes in chunks."""
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

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
