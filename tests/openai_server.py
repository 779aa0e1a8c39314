"""A server that speaks OpenAI's API as vLLM does (token ids on request, adapters at runtime), as SGLang does (its own
``/generate``), as an older one (log-probabilities), or as a strict one (text, unknown fields refused), with a drawn
writer behind it. Faults are played on demand, one a request.

Requests are kept as they came, so that tests see what a real server would see.
"""

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import zip_longest
from pathlib import Path
from typing import Any

from agent0.chat_format import format_call
from agent0.events.base import sha256
from agent0.events.values import Turn
from agent0.infra.engine.chat_template import Chat, chat_of
from agent0.infra.models.transformers import BASE
from agent0.settings import StudentConfig
from tests.loopback import listening

CALL = format_call("python", {"code": "print(12+30)"})
TEXTS = ("\\boxed{42}", CALL, "It is 12+30.", CALL, "\\boxed{7}")
STRICT = {"model", "messages", "max_tokens", "temperature", "top_p", "seed"}
BROKEN: dict[str, tuple[int, Any]] = {
    "cut": (200, {"choices": ["much more was promised"]}),
    "json": (200, '{"choices": [{"te'),
    "shape": (200, {"choices": [{"message": {"content": "x"}, "text": "x", "logprobs": [1]}]}),
    "full": (503, {"error": {"message": "Loading model", "code": 503}}),
    "down": (500, {"error": {"message": "CUDA error"}}),
    "as answer": (200, {"error": {"message": "worker died", "type": "server_error"}}),
    "context": (400, {"error": {"message": "This model's maximum context length is 8192 tokens, yours has 9000."}}),
    "quota": (429, {"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}}),
    "gone": (404, {"error": {"message": "The model does not exist.", "code": "model_not_found"}}),
}
END = "<|im_end|>"
"""The name of the token that ends a turn: in no text, but among the tokens."""
MIDWAY = ("broken", "ended", "silent", "error", "garbled")
"""Faults in the middle of a stream: the connection breaks, the stream ends too early, nothing more comes, an error, or
something that is no JSON."""
Part = dict[str, Any]


def actor(url: str, **changes: Any) -> StudentConfig:
    """A student on the server at ``url``."""
    given = {"provider": "openai", "base_url": f"{url}/v1", "tokenizer": str(BASE), "timeout_s": 60, "max_tokens": 48}
    return StudentConfig(**{**given, **changes})


@dataclass(frozen=True)
class Drawn:
    """What the writer wrote: ids with the texts of each, their log-probabilities, and whether it was cut off."""

    prompt: list[int]
    ids: list[int]
    pieces: list[str]
    logprobs: list[float]
    cut: bool

    @property
    def finish(self) -> str:
        return "length" if self.cut else "stop"


class OpenAIStandIn:
    """``level`` is what it gives; ``faults`` are played in order before it answers again; with ``bos`` it puts a token
    before prompts; with ``native`` it reads calls out of the text although no tools were named; with ``single`` its
    chat template takes one question and nothing after it. As ``sglang`` it has a way of its own, and tells each time
    all that was written, or what is new where it is ``incremental``. Without ``streams`` it answers in one piece,
    whatever it is asked for. With ``updating`` it takes ``adapters`` while it runs (name to path and digest), which
    change what is written unless it is ``deaf``. Its card says ``card``, too, and a GET of a path in ``shown`` gives
    what stands there. Choices of one call have seeds that are so far ``apart``. ``replies`` are sent in the place of
    its next answers, as they stand: a list as the parts of a stream."""

    def __init__(self, level: str = "tokens", models: tuple[str, ...] = ("student",), key: str = "") -> None:
        self.level, self.models, self.key, self.bos = level, models, key, False
        self.replies: list[Any] = []
        self.after, self.faults, self.native, self.single = "0.001", list[str](), False, False
        self.incremental, self.streams = False, True
        self.updating, self.deaf, self.apart = False, False, 1
        self.adapters: dict[str, tuple[str, str]] = {}
        self.ranks = list[int]()
        self.card: Part = {}
        self.shown: dict[str, Any] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.chat: Chat = chat_of(Path(BASE))
        self.hung = threading.Event()
        self.url = ""

    def answer(self, method: str, path: str, body: dict[str, Any], key: str) -> tuple[int, Any]:
        """Status and body of an answer; the parts of one that is streamed are a list."""
        if self.key and key != f"Bearer {self.key}":
            return 401, {"error": {"message": f"Incorrect API key provided: {key}", "type": "invalid_request_error"}}
        if method == "GET" and (
            shown := {"/v1/models": {"object": "list", "data": self._cards()}, **self.shown}.get(path)
        ):
            return 200, shown
        if path == "/detokenize" and self.level == "tokens":
            spelt = self.chat._trusted.decode(body["tokens"], skip_special_tokens=False)
            return 200, {"prompt": spelt}
        if path == "/generate" and self.level == "sglang":
            return 200, self._sglang(body)
        if self.updating and path in ("/v1/load_lora_adapter", "/v1/unload_lora_adapter"):
            return self._updated(path, body)
        if path not in ("/v1/completions", "/v1/chat/completions"):
            return 404, {"detail": "Not Found"}
        if refused := self._refused(path, body):
            return refused
        chat = path.endswith("chat/completions")
        return 200, self._parts(chat, body) if body.get("stream") and self.streams else self._whole(chat, body)

    def _refused(self, path: str, body: dict[str, Any]) -> tuple[int, Any] | None:
        if body["model"] not in (*self.models, *self.adapters):
            return 404, {"error": {"message": f"The model `{body['model']}` does not exist."}}
        if self.level == "text" and (unknown := set(body) - STRICT or path == "/v1/completions"):
            return 400, {"error": {"message": f"Unrecognized request argument supplied: {unknown}"}}
        if (heat := body["temperature"]) > 2:
            return 400, {"error": {"message": f"temperature must be in [0, 2], got {heat}. (parameter=temperature)"}}
        if self.single and len(body.get("messages", ())) > 1:
            return 400, {"error": {"message": "Conversation roles must be one user"}}
        return None

    def _cards(self) -> list[Part]:
        owner = "sglang" if self.level == "sglang" else "vllm"
        held = [{"id": name, "object": "model", "owned_by": owner, "parent": None, **self.card} for name in self.models]
        loaded = [{"id": name, "root": path, "parent": self.models[0]} for name, (path, _) in self.adapters.items()]
        return held + loaded

    def _updated(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        name = body["lora_name"]
        if path.endswith("unload_lora_adapter"):
            if self.adapters.pop(name, None):
                return 200, f"Success: LoRA adapter '{name}' removed successfully."
            return 404, {"error": {"message": f"The lora adapter '{name}' cannot be found."}}
        weights = Path(body["lora_path"]) / "adapter_model.safetensors"
        if name in self.adapters:
            return 400, {"error": {"message": f"The lora adapter '{name}' has already been loaded."}}
        if not weights.is_file() or not weights.with_name("adapter_config.json").is_file():
            return 404, {"error": {"message": f"No adapter found for {body['lora_path']}"}}
        self.ranks.append(json.loads(weights.with_name("adapter_config.json").read_text())["r"])
        self.adapters[name] = body["lora_path"], "" if self.deaf else sha256(weights.read_bytes())
        return 200, f"Success: LoRA adapter '{name}' added successfully."

    def draw(self, prompt: list[int], seed: int, most: int, by: str = "", heat: float = 1.0) -> Drawn:
        """What is written after ``prompt`` by the weights ``by``: nothing sensible above temperature 1."""
        rng = random.Random(f"{prompt} {seed} {by}")
        ids = [*self.chat.written(rng.choice(TEXTS) if heat <= 1 else str(rng.random())), self.chat.stop]
        cut = len(ids) > most
        ids = ids[:most]
        text, ends = self.chat.decode(ids), self.chat.ends(ids)
        pieces = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        return Drawn(prompt, ids, pieces, [-rng.random() for _ in ids], cut)

    def _drawn(self, chat: bool, body: dict[str, Any], index: int = 0) -> Drawn:
        turns = [Turn(role=m["role"], content=m["content"]) for m in body.get("messages", ())]
        prompt = self.chat.prompt(turns) if chat else [*([0] if self.bos else []), *body["prompt"]]
        by = self.adapters.get(body["model"], ("", ""))[1]
        seed = body["seed"] + index * self.apart
        return self.draw(prompt, seed if body["temperature"] else -1, body["max_tokens"], by, body["temperature"])

    def _whole(self, chat: bool, body: dict[str, Any]) -> Part:
        one = self._drawn(chat, body)
        text = "".join(one.pieces)
        said = {"message": self._message(text)} if chat else {"text": text}
        choice = self._choice(chat, body, one, slice(None)) | said | {"finish_reason": one.finish}
        return {"model": body["model"], "choices": [choice], "usage": self._usage([one])}

    def _parts(self, chat: bool, body: dict[str, Any]) -> list[Part]:
        """Those of all choices in turn, then what the call took."""
        drawn = [self._drawn(chat, body, n) for n in range(body.get("n", 1))]
        each = [self._told(chat, body, one, n) for n, one in enumerate(drawn)]
        parts = [part for row in zip_longest(*each) for part in row if part]
        if not body.get("stream_options"):
            return parts
        return [*parts, {"model": body["model"], "choices": [], "usage": self._usage(drawn)}]

    def _told(self, chat: bool, body: dict[str, Any], one: Drawn, index: int) -> list[Part]:
        """A token a part, then why it ended."""
        parts = list[Part]()
        for n, piece in enumerate(one.pieces):
            said = {"delta": {"content": piece}} if chat else {"text": piece}
            parts.append({"choices": [self._choice(chat, body, one, slice(n, n + 1)) | said | {"finish_reason": None}]})
        if self.level == "tokens" and body.get("return_token_ids"):
            (parts[0] if chat else parts[0]["choices"][0])["prompt_token_ids"] = one.prompt
        parts.append(
            {"choices": [{"index": 0, "finish_reason": one.finish} | ({"delta": {}} if chat else {"text": ""})]}
        )
        if chat and self.native:
            self._read_calls(parts, "".join(one.pieces))
        for part in parts:
            part["choices"][0]["index"] = index
        return parts

    def _read_calls(self, parts: list[Part], text: str) -> None:
        """A call that is complete comes apart from the text, its arguments in two pieces."""
        message = self._message(text)
        if not message.get("tool_calls"):
            return
        for part in parts[:-1]:
            part["choices"][0]["delta"] = {}
        function = message["tool_calls"][0]["function"]
        half = len(function["arguments"]) // 2
        pieces = (function | {"arguments": function["arguments"][:half]}, {"arguments": function["arguments"][half:]})
        for part, piece in zip(parts, pieces, strict=False):
            part["choices"][0]["delta"] = {"tool_calls": [{"index": 0, "function": piece}]}
        parts[0]["choices"][0]["delta"]["content"] = message["content"]

    def _choice(self, chat: bool, body: dict[str, Any], one: Drawn, which: slice) -> Part:
        choice: Part = {"index": 0}
        logprobs = one.logprobs[which]
        pieces = [piece or END for piece in one.pieces[which]]
        if self.level != "text" and body.get("logprobs") is not None:
            each = [{"token": t, "logprob": p, "top_logprobs": []} for t, p in zip(pieces, logprobs, strict=True)]
            choice["logprobs"] = {"content": each} if chat else {"token_logprobs": logprobs, "tokens": pieces}
        if self.level == "tokens" and body.get("return_token_ids"):
            choice["token_ids"] = one.ids[which]
        return choice

    def _usage(self, drawn: list[Drawn]) -> Part:
        return {"prompt_tokens": len(drawn[0].prompt), "completion_tokens": sum(len(one.ids) for one in drawn)}

    def _sglang(self, body: dict[str, Any]) -> list[Part]:
        given, parts = body["sampling_params"], list[Part]()
        seed = given["sampling_seed"] if given["temperature"] else -1
        one = self.draw(body["input_ids"], seed, given["max_new_tokens"])
        steps = [[value, token, None] for value, token in zip(one.logprobs, one.ids, strict=True)]
        for n in range(1, len(one.ids) + 1):
            start = n - 1 if self.incremental else 0
            ended = {"type": one.finish} if n == len(one.ids) else None
            meta = {"output_token_logprobs": steps[start:n], "prompt_tokens": len(one.prompt), "finish_reason": ended}
            told = {"text": "".join(one.pieces[start:n]), "output_ids": one.ids[start:n]}
            parts.append(told | {"meta_info": meta | {"completion_tokens": n}})
        return parts

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
        fault = there.faults.pop(0) if there.faults and method == "POST" else ""
        if fault and fault not in MIDWAY:
            self._fail(fault, body)
            return
        status, found = there.answer(method, self.path, body, self.headers.get("Authorization", ""))
        found = there.replies.pop(0) if there.replies and method == "POST" else found
        self._stream(found, fault) if isinstance(found, list) else self._send(status, found)

    def _fail(self, fault: str, body: dict[str, Any]) -> None:
        there = self.server_of
        match fault:
            case "hang":
                there.hung.wait()
                self.close_connection = True
            case "closed":
                self.close_connection = True
            case "busy":
                self._send(429, {"error": {"message": "Too many requests"}}, after=there.after)
            case "quote":
                self._send(400, {"error": {"message": f"Input should be shorter: {json.dumps(body['messages'])}"}})
            case _:
                self._send(*BROKEN[fault], missing=1000 if fault == "cut" else 0)

    def _stream(self, parts: list[Part], fault: str) -> None:
        """Server-sent events; with a ``fault`` the first part, and then that."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in parts[:1] if fault else parts:
            self._event(part if isinstance(part, str) else json.dumps(part))
        if fault == "error":
            self._event(json.dumps({"error": {"message": "EngineDeadError", "code": 500}}))
        if fault == "garbled":
            self._event('{"choices": [{"te')
        if fault == "silent":
            self.server_of.hung.wait()
        if fault in ("broken", "silent"):
            self.close_connection = True
            return
        if not fault:
            self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, text: str) -> None:
        data = f"data: {text}\n\n".encode(errors="surrogateescape")
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _send(self, status: int, body: Any, after: str = "", missing: int = 0) -> None:
        data = body.encode(errors="surrogateescape") if isinstance(body, str) else json.dumps(body).encode()
        kinds = {"S": "text/plain", "<": "text/html; charset=utf-8"}
        kind = kinds.get(str(body)[0], "application/json")
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data) + missing))
            if after:
                self.send_header("Retry-After", after)
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.close_connection = self.close_connection or bool(missing)


@contextmanager
def serving(**options: Any) -> Iterator[OpenAIStandIn]:
    """A server on a free loopback port."""
    there = OpenAIStandIn(**options)
    with listening(_Handler, _Server, server_of=there) as server:
        there.url = server.url
        try:
            yield there
        finally:
            there.hung.set()
