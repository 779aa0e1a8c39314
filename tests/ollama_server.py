"""A server that does what Ollama's does on the wire, with a scripted model behind it.

A chat is rendered by the official template of qwen2.5, and the model sees that prompt alone. ``parallel`` chats are
answered at once and ``queue`` more may wait (OLLAMA_NUM_PARALLEL and OLLAMA_MAX_QUEUE; the real one bounds the queue
only while its model loads), one more is refused as busy. Answers are streamed, a line a token.

Blobs are kept in memory under their digest, and models are made from them as the real one's handlers do: which fields
are refused depends on the version that it says it is.

Requests are kept as they came over the wire, and prompts as they were rendered, so that tests see what a real server
and its model would see.
"""

import asyncio
import hashlib
import json
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent0.events.values import Turn
from agent0.infra.models.scripted import Scripted, decode, encode
from agent0.ports.models import GenerateRequest, Generation, Sampling
from agent0.ports.storage import Artifacts
from tests.ollama_chat import native, rendered, seen

CREATED = "2026-01-01T00:00:00.000000Z"
Writes = Callable[[str, str, int], tuple[str, list[tuple[str, float]]]]
"""Model, prompt and most tokens to the text that it goes on with, and its tokens with their log-probabilities."""
ADAPTERS_GONE = (0, 34, 1)
REFUSES_OVERLONG = (0, 12, 11)
BUSY = "server busy, please try again.  maximum pending requests exceeded"
Lines = Iterator[dict[str, Any]]


@dataclass
class OllamaServer:
    """Where it listens, what it has and what it was asked."""

    artifacts: Artifacts
    url: str = ""
    models: tuple[str, ...] = ("qwen2.5:3b", "qwen2.5:7b")
    capabilities: tuple[str, ...] = ("completion", "tools")
    offers_logprobs: bool = True
    fail: int = 0
    """A status that every chat ends with, and what it says then."""
    failing: str = "made to fail"
    full: int = 0
    """So many chats are refused as if the queue were full."""
    stall: threading.Event | None = None
    """Every chat waits for it before its first word."""
    version: str = "0.12.11"
    parallel: int = 1
    queue: int = 512
    turn_s: float = 0.0
    """Seconds that a turn takes."""
    says: Callable[[Sequence[Turn]], str] | None = None
    """What the model says to the turns that it sees, in the place of the scripted one."""
    spoils_stream: Callable[[Lines], Lines] = iter
    """What becomes of an answer on its way; an error in it cuts the connection."""
    writes: Writes | None = None
    renders: Callable[[list[dict[str, Any]]], str] | None = None
    infos: dict[str, dict[str, Any]] = field(default_factory=dict)
    """More of a model's ``model_info``."""
    shows: dict[str, Any] = field(default_factory=dict)
    """More of what it shows of every model."""
    thought: str = ""
    """What a model thinks that can (capability ``thinking``), where it is not told not to."""
    trained_context: int = 32768
    based_on: dict[str, str] = field(default_factory=dict)
    """Model -> blob of its base, by which runners are kept; models of their own where it is not here."""
    runners: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Blob of a base -> the model and the window that its runner was started with."""
    loads: int = 0
    """How often a runner was started."""
    level: str = "Q4_K_M"
    """How its models are quantised."""
    spoils: bool = False
    """Whether what is handed over arrives damaged."""
    blobs: dict[str, bytes] = field(default_factory=dict)
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    """What the model saw, a prompt a chat."""
    in_memory: set[str] = field(default_factory=set)
    on_refusal: Callable[[], object] = bool
    """Called for each chat that finds the queue full."""
    most: int = 0
    """The most chats that were here at once."""

    def __post_init__(self) -> None:
        self._places, self._turn, self._here = threading.Lock(), threading.Semaphore(self.parallel), 0

    def chat(self, body: dict[str, Any], gone: Callable[[], bool] = bool) -> tuple[int, dict[str, Any] | Lines]:
        """POST /api/chat: status, and one object or those of the stream; with ``_debug_render_only`` the prompt.

        ``gone`` tells whether its client has left: such a chat is not answered.
        """
        self.asked.append(body)
        if body.get("_debug_render_only") and self.renders and body["model"] in self.made:
            info = {"_debug_info": {"rendered_template": self.renders(body["messages"])}}
            return 200, {"model": body["model"], "created_at": CREATED, **info}
        if self.stall:
            self.stall.wait(20)
        if refused := self._refused(body):
            return refused
        if not body["messages"]:
            return 200, self._kept(body)
        with self._places:
            if self.full or self._here >= self.parallel + self.queue:
                self.full = max(0, self.full - 1)
                self.on_refusal()
                return 503, {"error": BUSY}
            self._here += 1
            self.most = max(self.most, self._here)
        try:
            with self._turn:
                return self._answered(body, gone)
        finally:
            with self._places:
                self._here -= 1

    def _refused(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if self.fail:
            return self.fail, {"error": self.failing}
        if body["model"] not in self.models:
            return 404, {"error": f"model '{body['model']}' not found"}
        if body.get("think") and "thinking" not in self.capabilities:
            return 400, {"error": f'"{body["model"]}" does not support thinking'}
        if body.get("logprobs") and body.get("tools") and body.get("stream", True):
            return 400, {"error": "logprobs is not supported with tools + stream"}
        return None

    def _kept(self, body: dict[str, Any]) -> dict[str, Any]:
        """A chat without messages loads the model, or throws it out of memory."""
        leaves = body.get("keep_alive") == 0
        (self.in_memory.discard if leaves else self.in_memory.add)(body["model"])
        reply = {"model": body["model"], "created_at": CREATED, "message": {"role": "assistant", "content": ""}}
        return reply | {"done": True, "done_reason": "unload" if leaves else "load"}

    def _answered(self, body: dict[str, Any], gone: Callable[[], bool]) -> tuple[int, dict[str, Any] | Lines]:
        if gone():
            raise ConnectionAbortedError
        time.sleep(self.turn_s)
        self.in_memory.add(body["model"])
        size, window = len(encode(rendered(body))), body.get("options", {}).get("num_ctx", 4096)
        if size > window and body.get("truncate") is False and self._version >= REFUSES_OVERLONG:
            told = f"request ({size} tokens) exceeds the available context size ({window} tokens), try increasing it"
            return 400, {"error": json.dumps({"error": {"code": 400, "message": told}})}
        self.prompts.append(rendered(_fitting(body, window)))
        lines = self._thought(body) + list(self._lines(body, self._generated(body, seen(self.prompts[-1]))))
        lines[-1]["load_duration"] = self._loaded(body) * 1_000_000_000
        return 200, _merged(lines) if body.get("stream") is False else self.spoils_stream(iter(lines))

    def _loaded(self, body: dict[str, Any]) -> bool:
        """Whether a runner is started for the chat: one of its base with another model or window is thrown out."""
        base = self.based_on.get(body["model"], body["model"])
        runner = body["model"], min(body.get("options", {}).get("num_ctx", 4096), self.trained_context)
        fresh = self.runners.get(base) != runner
        self.runners[base] = runner
        self.loads += fresh
        return fresh

    def _thought(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The lines of a thought: a server that is not told whether to think does, where the model can."""
        can, wants = "thinking" in self.capabilities, body.get("think", True)
        if not can or not self.thought or wants is False:
            return []
        line = {"model": body["model"], "created_at": CREATED, "done": False}
        return [line | {"message": {"role": "assistant", "content": "", "thinking": one}} for one in self.thought]

    @property
    def _version(self) -> tuple[int, ...]:
        return tuple(map(int, self.version.split("-")[0].split(".")))

    def _generated(self, body: dict[str, Any], turns: tuple[Turn, ...]) -> Generation:
        options = body.get("options", {})
        sampling = Sampling(
            temperature=options.get("temperature", 0.8),
            top_p=options.get("top_p", 0.9),
            max_tokens=options.get("num_predict", 128),
            seed=options.get("seed", 0),
        )
        if self.says:
            text = self.says(turns)
            ids = encode(text)
            return Generation(text, ids, (-0.25,) * len(ids), encode(self.prompts[-1]))
        return asyncio.run(Scripted(self.artifacts).generate(GenerateRequest(turns, sampling)))

    def _lines(self, body: dict[str, Any], written: Generation) -> Lines:
        """An answer as it is streamed: a token with its log-probability a line, native calls, and the end."""
        line = {"model": body["model"], "created_at": CREATED, "done": False}
        names = [tool["function"]["name"] for tool in body.get("tools") or ()]
        content, calls = native(written.text, names) if names else (written.text, [])
        told = 0
        for token, value in zip(map(_piece, written.token_ids), written.logprobs, strict=True):
            said = {"role": "assistant", "content": content[told : told + len(token)]}
            found = [{"token": token, "logprob": value, "bytes": list(token.encode())}]
            told += len(token)
            yield line | {"message": said} | ({"logprobs": found} if self._tells_logprobs(body) else {})
        if calls:
            yield line | {"message": {"role": "assistant", "content": "", "tool_calls": calls}}
        yield line | {
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": written.finish,
            "total_duration": 5_000_000,
            "load_duration": 1_000_000,
            "prompt_eval_count": len(written.prompt_ids),
            "prompt_eval_duration": 1_000_000,
            "eval_count": len(written.token_ids),
            "eval_duration": 3_000_000,
        }

    def _tells_logprobs(self, body: dict[str, Any]) -> bool:
        return bool(body.get("logprobs")) and self.offers_logprobs

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
        if adapters and self._version >= ADAPTERS_GONE:
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
        if body.get("quantize") and not all(map(_is_half, map(self.blobs.__getitem__, files.values()))):
            return 500, {"error": "quantization is only supported for F16, BF16 and F32 models"}
        self.made[body["model"]] = body
        return 200, {"status": "success"}

    def adapted(self, model: str) -> bool:
        """Whether it was made with an adapter in it or beside it."""
        body = self.made.get(model, {})
        return "model.gguf" in (body.get("files") or {}) or bool(body.get("adapters"))

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
                "qwen2.context_length": self.trained_context,
                **self.infos.get(body["model"], {}),
            },
            "capabilities": list(self.capabilities),
            **({"modelfile": f"FROM /blobs/sha256-{base}"} if (base := self.based_on.get(body["model"])) else {}),
            **self.shows,
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
        rows = [{"name": m, "model": m, "context_length": size} for m, size in sorted(self.runners.values())]
        return {"models": [row | {"size": 1, "digest": "0", "expires_at": CREATED} for row in rows]}

    def _details(self, model: str) -> dict[str, Any]:
        size = model.partition(":")[2].upper()
        return {"format": "gguf", "family": "qwen2", "parameter_size": size, "quantization_level": self.level}


def _is_half(content: bytes) -> bool:
    """Whether a GGUF file says that it is F16: of one that says F32, which is 0, a server takes that as not said."""
    kind, value = struct.unpack("<II", content.partition(b"general.file_type")[2][:8] or bytes(8))
    return (kind, value) == (4, 1)


def _piece(token: int) -> str:
    return decode([token])


def _fitting(body: dict[str, Any], window: int) -> dict[str, Any]:
    """A chat without the messages that do not fit, from the front: system messages and the last one stay."""
    while len(encode(rendered(body))) > window:
        spare = [n for n, one in enumerate(body["messages"][:-1]) if one["role"] != "system"]
        if not spare:
            break
        body = body | {"messages": [one for n, one in enumerate(body["messages"]) if n != spare[0]]}
    return body


def _merged(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The lines of a stream as the one object of an answer that is not streamed."""
    message = {"role": "assistant", "content": "".join(line["message"]["content"] for line in lines)}
    if calls := [call for line in lines for call in line["message"].get("tool_calls", ())]:
        message["tool_calls"] = calls
    found = [entry for line in lines for entry in line.get("logprobs", ())]
    return lines[-1] | {"message": message} | ({"logprobs": found} if found else {})
