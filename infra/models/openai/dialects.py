"""What goes to an OpenAI-compatible server, for each way to ask. No connection here.

The best way that a server takes is kept: llama.cpp's own ``/completion`` or SGLang's own ``/generate`` (token ids in,
ids with log-probabilities out), ``/v1/completions`` with ids (vLLM's ``return_token_ids``), then
``/v1/chat/completions``, where the server's own template and tokenizer read text.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from agent0.events.values import Capture
from agent0.infra.models.tool_text import messages
from agent0.ports.models import GenerateRequest, Sampling

Dialect = Literal["llama.cpp", "sglang", "completions", "chat"]
PATHS: Mapping[Dialect, str] = {
    "llama.cpp": "/completion",
    "sglang": "/generate",
    "completions": "/v1/completions",
    "chat": "/v1/chat/completions",
}

OWN: Mapping[str, Dialect] = {"llama.cpp": "llama.cpp", "sglang": "sglang"}
"""Servers with a way of their own."""

PENALTIES = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
UNCUT = {"top_k": -1, "min_p": 0.0, "repeat_penalty": 1.0, **PENALTIES}
"""Take a server's own defaults away (llama.cpp: top_k 40, min_p 0.05; vLLM: the model's generation_config.json)."""
CONTEXT = ("max_model_len", "n_ctx", "context_length", "context_window")
"""What servers call the tokens that a call may have."""
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True)
class ListedModel:
    """What a server says of one of its models: whose adapter it is, where its files lie, who made it, how many tokens
    a call may have (``context``), and numbers of a hidden state (``width``); 0 where it does not say."""

    parent: str
    root: str
    owned_by: str
    context: int = 0
    width: int = 0

    @classmethod
    def of(cls, card: Mapping[str, object]) -> Self:
        """Read a row of ``/v1/models``: vLLM and SGLang have ``max_model_len``, llama.cpp has ``meta``."""
        meta = card.get("meta")
        numbers = {**(meta if isinstance(meta, dict) else {}), **card}
        context = next((size for key in CONTEXT if isinstance(size := numbers.get(key), int) and size > 0), 0)
        width = numbers.get("n_embd")
        parent, root, owner = (str(card.get(key) or "") for key in ("parent", "root", "owned_by"))
        return cls(parent, root, owner, context, width if isinstance(width, int) else 0)


@dataclass(frozen=True)
class Way:
    """One way to ask, and the most that it can give. Tools are described in the text and called in it: what a server
    makes of native ones is lost to the context. ``streams``: the answer comes as it is written."""

    dialect: Dialect
    asks: Capture
    streams: bool = True

    @property
    def ids(self) -> bool:
        """Whether the prompt goes as token ids."""
        return self.dialect != "chat"

    @property
    def draws(self) -> bool:
        """Whether one call may ask for several answers, of which answer i is drawn with seed + i."""
        return self.dialect in ("llama.cpp", "completions")


def ways(kind: str, *, tokenizer: bool) -> list[Way]:
    """Every way to ask a server, best first: of which ``kind`` it says it is, and with a tokenizer here."""
    native = OWN.get(kind)
    by_ids = [*([Way(native, "tokens")] if native else []), Way("completions", "tokens")] if tokenizer else []
    levels: tuple[Capture, ...] = ("tokens", "logprobs", "text")
    return [*by_ids, *(Way("chat", asks) for asks in levels), Way("chat", "text", streams=False)]


def body(
    way: Way, request: GenerateRequest, model: str, prompt: Sequence[int], stops: Collection[int], count: int = 1
) -> dict[str, object]:
    """The request's body, for ``count`` answers. ``prompt`` and ``stops`` are token ids, where the way sends ids."""
    sampling, schema = request.sampling, request.schema
    if way.dialect == "llama.cpp":
        payload = _llama(sampling, prompt, request.margins) | ({"n_cmpl": count} if count > 1 else {})
        return payload | ({"json_schema": schema} if schema else {})
    if way.dialect == "sglang":
        return _sglang(sampling, prompt, stops, schema)
    return _openai(way, request, model, prompt, stops) | ({"n": count} if count > 1 else {})


def _openai(
    way: Way, request: GenerateRequest, model: str, prompt: Sequence[int], stops: Collection[int]
) -> dict[str, object]:
    """A body in OpenAI's own form; a schema is one of its structured outputs, which vLLM and llama.cpp have, too."""
    sampling = request.sampling
    payload: dict[str, object] = {"model": model, "max_tokens": sampling.max_tokens, "seed": seed_of(sampling)}
    payload |= {"temperature": sampling.temperature, "top_p": sampling.top_p}
    payload |= STREAMED if way.streams else {}
    payload |= {"stop": list(sampling.stop)} if sampling.stop else {}
    payload |= UNCUT if way.asks != "text" else {}
    payload |= {"return_token_ids": True} if way.asks == "tokens" else {}
    if request.schema:
        payload |= {
            "response_format": {"type": "json_schema", "json_schema": {"name": "task", "schema": request.schema}}
        }
    if way.dialect == "completions":
        return payload | {"prompt": list(prompt), "logprobs": 2 * request.margins, "stop_token_ids": sorted(stops)}
    payload |= {"messages": messages(request.turns, request.tools)}
    return payload | ({"logprobs": True, "top_logprobs": 1 + request.margins} if way.asks != "text" else {})


def seed_of(sampling: Sampling) -> int:
    """The seed as it goes to a server: servers differ in how large a one they take."""
    return sampling.seed % 2**31


def _llama(sampling: Sampling, prompt: Sequence[int], margins: bool) -> dict[str, object]:
    # no stop texts: of the tokens that spell them it would tell nothing
    samplers = ["temperature"] if sampling.top_p >= 1 else ["temperature", "top_p"]
    return {
        "prompt": list(prompt),
        "n_predict": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "samplers": samplers,
        "seed": seed_of(sampling),
        "n_probs": 1 + margins,
        "post_sampling_probs": False,
        "stream": True,
    }


def _sglang(
    sampling: Sampling, prompt: Sequence[int], stops: Collection[int], schema: Mapping[str, object] | None
) -> dict[str, object]:
    sampling_params: dict[str, object] = {
        "max_new_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": -1,
        "min_p": 0.0,
        "sampling_seed": seed_of(sampling),
        "stop_token_ids": sorted(stops),
        "skip_special_tokens": False,
        "no_stop_trim": True,
    }
    sampling_params |= {"stop": list(sampling.stop)} if sampling.stop else {}
    sampling_params |= PENALTIES | ({"json_schema": json.dumps(schema)} if schema else {})
    return {"input_ids": list(prompt), "sampling_params": sampling_params, "return_logprob": True, "stream": True}
