"""What goes to an OpenAI-compatible server and what comes back, for each way to ask. No connection here.

The best way that a server takes is kept: llama.cpp's own ``/completion`` (token ids in, ids with log-probabilities
out), ``/v1/completions`` with ids (vLLM's ``return_token_ids``), then ``/v1/chat/completions``, where the server's own
template and tokenizer read text.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agent0.chat_format import CLOSE, OPEN
from agent0.ports.models import GenerateRequest, Sampling
from events.values import Capture
from infra.models.tool_text import messages

Dialect = Literal["llama.cpp", "completions", "chat"]
PATHS: Mapping[Dialect, str] = {
    "llama.cpp": "/completion",
    "completions": "/v1/completions",
    "chat": "/v1/chat/completions",
}

UNCUT = {
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Take a server's own defaults away (llama.cpp: top_k 40, min_p 0.05; vLLM: the model's generation_config.json)."""


@dataclass(frozen=True)
class Way:
    """One way to ask, and the most that it can give. Tools are described in the text and called in it: what a server
    makes of native ones is lost to the context."""

    dialect: Dialect
    asks: Capture

    @property
    def ids(self) -> bool:
        """Whether the prompt goes as token ids."""
        return self.dialect != "chat"


def ways(*, tokenizer: bool, llama: bool) -> list[Way]:
    """Every way to ask a server, best first: with a tokenizer here, and whether it is llama.cpp's."""
    by_ids = [*([Way("llama.cpp", "tokens")] if llama else []), Way("completions", "tokens")] if tokenizer else []
    levels: tuple[Capture, ...] = ("tokens", "logprobs", "text")
    return by_ids + [Way("chat", asks) for asks in levels]


def body(way: Way, request: GenerateRequest, model: str, prompt: Sequence[int], stops: Collection[int]) -> Any:
    """The request's body. ``prompt`` and ``stops`` are token ids, where the way sends ids."""
    sampling = request.sampling
    if way.dialect == "llama.cpp":
        return _native(sampling, prompt)
    held = {"model": model, "max_tokens": sampling.max_tokens, "seed": sampling.seed % 2**31}
    held |= {"temperature": sampling.temperature, "top_p": sampling.top_p}
    if way.asks != "text":
        held |= UNCUT
    if way.asks == "tokens":
        held |= {"return_token_ids": True}
    if way.dialect == "completions":
        return held | {"prompt": list(prompt), "logprobs": 0, "stop_token_ids": sorted(stops)}
    held |= {"messages": messages(request.turns, request.tools)}
    return held | ({"logprobs": True, "top_logprobs": 1} if way.asks != "text" else {})


def _native(sampling: Sampling, prompt: Sequence[int]) -> dict[str, Any]:
    samplers = ["temperature"] if sampling.top_p >= 1 else ["temperature", "top_p"]
    return {
        "prompt": list(prompt),
        "n_predict": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "samplers": samplers,
        "seed": sampling.seed % 2**31,
        "n_probs": 1,
        "post_sampling_probs": False,
    }


@dataclass(frozen=True)
class Reply:
    """A server's answer as read. ``pieces`` are the texts of the tokens; ``read`` is how many prompt tokens it
    counted."""

    text: str
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    pieces: tuple[str, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    finish: Literal["stop", "length"] = "stop"
    read: int = 0
    written: int = 0

    @property
    def capture(self) -> Capture:
        """How much of the tokens is known."""
        if self.ids and self.prompt_ids and len(self.ids) == len(self.logprobs):
            return "tokens"
        return "logprobs" if self.logprobs else "text"

    def until(self, stops: Collection[int]) -> "Reply":
        """Without anything after the first of ``stops``: a server may know another end of a turn."""
        ends = next((n + 1 for n, one in enumerate(self.ids) if one in stops), 0)
        if not ends:
            return self
        return replace(self, ids=self.ids[:ends], logprobs=self.logprobs[:ends], finish="stop")


def reply_of(way: Way, found: Any) -> Reply:
    """Read a server's answer.

    Raises:
        KeyError, IndexError, TypeError, ValueError: it is not what such a server answers.
    """
    if way.dialect == "llama.cpp":
        return _native_reply(found)
    choice, usage = found["choices"][0], found.get("usage") or {}
    message = choice["message"] if way.dialect == "chat" else {"content": choice["text"]}
    logprobs, pieces = _logprobs(choice.get("logprobs") or {})
    ids = tuple(map(int, choice.get("token_ids") or ()))
    return Reply(
        text=_text(message),
        ids=ids,
        logprobs=logprobs,
        pieces=pieces,
        prompt_ids=tuple(map(int, choice.get("prompt_token_ids") or found.get("prompt_token_ids") or ())),
        finish="length" if choice.get("finish_reason") == "length" else "stop",
        read=int(usage.get("prompt_tokens") or 0),
        written=int(usage.get("completion_tokens") or len(ids) or len(logprobs)),
    )


def _native_reply(found: Any) -> Reply:
    """It tells nothing of a last token that ends within a character: such a one is left out."""
    steps = found["completion_probabilities"]
    return Reply(
        text=str(found["content"]),
        ids=tuple(int(step["id"]) for step in steps),
        logprobs=tuple(min(0.0, float(step["logprob"])) for step in steps),
        finish="length" if found["stop_type"] == "limit" else "stop",
        read=int(found["tokens_evaluated"]),
        written=len(steps),
    )


def _logprobs(found: Mapping[str, Any]) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Of a chat's ``content``, or of the older ``token_logprobs``; a token without one leaves none."""
    content = found.get("content")
    if content is None:
        pairs = list(zip(found.get("token_logprobs") or (), found.get("tokens") or (), strict=False))
    else:
        pairs = [(one["logprob"], one["token"]) for one in content]
    if any(logprob is None for logprob, _ in pairs):
        return (), ()
    return tuple(min(0.0, float(logprob)) for logprob, _ in pairs), tuple(str(token) for _, token in pairs)


def _text(message: Mapping[str, Any]) -> str:
    """Calls that a server with a parser of its own read out of the text are put back behind it, for ours."""
    said = str(message.get("content") or "")
    calls = [_call(one["function"]) for one in message.get("tool_calls") or ()]
    return "\n".join([said.strip(), *calls] if said.strip() else calls) if calls else said


def _call(function: Mapping[str, Any]) -> str:
    """Arguments are text as the model wrote it: what is no JSON stays so, and the parser says so."""
    arguments = str(function["arguments"])
    if "tool_call>" in arguments:
        arguments = arguments.replace("<", "\\u003c")
    return f'{OPEN}\n{{"name": {json.dumps(str(function["name"]))}, "arguments": {arguments}}}\n{CLOSE}'
