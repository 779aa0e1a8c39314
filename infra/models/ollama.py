"""Models of an Ollama server, through its official client and native chat API.

Calls and their results travel as text (``infra.models.tool_text``). Ollama turns text into tokens itself and gives no
token ids: its turns are recorded and scored but never trained on.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

import httpx
from ollama import AsyncClient, ChatResponse, ResponseError

from agent0.chat_format import format_call
from agent0.errors import (
    Agent0Error,
    AuthError,
    DependencyError,
    OperationError,
    OtherServerError,
    TransientError,
)
from agent0.ports.models import GenerateRequest, Generation
from agent0.settings import ActorConfig, StudentConfig
from events.values import Usage
from infra.models.calls.counts import count_of, logprob
from infra.models.calls.margins import margin
from infra.models.calls.refusals import unquoting
from infra.models.calls.slots import BusyError, Slots
from infra.models.calls.streams import UNREADABLE, Patience, timely
from infra.models.calls.trial import ATTEMPT
from infra.models.llama_server import authorities, client_of, kind_of
from infra.models.tool_text import messages

TEACHER, STUDENT = "qwen2.5:3b", "qwen2.5:7b"
"""Models where none is configured."""

KEEP_ALIVE = "10m"
"""How long the server keeps a model in memory after a call."""

CONNECT_S = 5.0
LOAD_S = 120.0
"""Seconds in which a model must be loaded and write a word, before a run."""
UNCUT = {"truncate": False, "shift": False}
"""A server cuts a prompt that does not fit into ``num_ctx``, and a context that is full, unless it is told not to."""
REFUSES = (0, 12, 11)
"""From this version on a server heeds ``UNCUT``."""
ABOUT, EACH = 256, 32
"""Tokens that a chat template adds to a conversation, and to each of its messages, at most."""
PADDED = 256
"""A server rounds its context window up to a multiple of this."""
OVERLONG = re.compile(r"context (size|length)")

FAILURES: tuple[type[Exception], ...] = (ResponseError, ConnectionError, TimeoutError, httpx.HTTPError, *UNREADABLE)
KEYLESS = (401, 403)
ELSEWHERE = (*KEYLESS, 404, 405, 501)
"""What other servers answer to a question that is Ollama's alone."""
ELSEWHERE_FIX = "Set models.ollama_url, or use provider openai."

LOOP = 30
"""So many equal pieces in a row, and Ollama ends a turn without saying so (llm/llama_server.go)."""


class Ollama:
    """The ``Model`` port on one model of the Ollama server at ``url``; ``actor.parallel`` calls to it at once."""

    def __init__(self, actor: ActorConfig, url: str) -> None:
        self._actor = actor
        self._url = url
        self._model = actor.model or (STUDENT if isinstance(actor, StudentConfig) else TEACHER)
        self.name = f"ollama/{self._model}"
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=actor.parallel)
        timeout = httpx.Timeout(None, connect=min(CONNECT_S, actor.timeout_s))  # of what is read: ``_pieces``
        self._client = _Client(url, timeout=timeout, limits=limits, verify=authorities())
        self._heeds: bool | None = None
        self._slots = Slots("Ollama", actor.parallel, actor.timeout_s)

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one turn, calls as the model writes them. ``timeout_s`` is the time to its first token, once the call
        has a slot; from then on the server counts as away after ``silent_s`` without a word.

        Raises:
            DependencyError: no server, one that is busy or silent, or it lacks the model.
            TransientError: it failed, or its first token took longer than ``timeout_s``.
            OperationError: a prefill or an adapter was asked for, the prompt does not fit into ``num_ctx``, or the
                model refuses the request.
        """
        if request.prefill:
            raise OperationError("Ollama cannot begin a turn with given text.", "Its chat API has no such option.")
        if request.adapter:
            fix = "Make it a model there with `agent0 model push`, or use provider transformers."
            raise OperationError("Ollama loads no adapters by the request.", "It serves models by name.", fix)
        return await self._slots.call(lambda: self._written(request))

    async def rest(self) -> None:
        """Have the server throw the model out of memory; the next call loads it again. No server is no error."""
        try:
            async with asyncio.timeout(self._actor.timeout_s):
                await self._client.chat(self._model, [], keep_alive=0)
        except FAILURES:
            return

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()  # type: ignore[no-untyped-call]

    async def _written(self, request: GenerateRequest) -> Generation:
        """One turn. Raises BusyError too."""
        start, first, parts = time.monotonic(), None, list[ChatResponse]()
        where = f"{self._model} at {self._url}"
        try:
            async for part in timely(self._pieces(request), "Ollama", where, Patience.of(self._actor)):
                first = first or time.monotonic()
                parts.append(part)
            written = self._read(parts, (first or start) - start, time.monotonic() - start) if parts else None
        except FAILURES as error:
            if isinstance(error, UNREADABLE) and (other := await _other_kind(self._url)):
                raise OtherServerError("Ollama", f"What answers at {self._url} is {other}.", ELSEWHERE_FIX) from None
            private = [turn.content for turn in request.turns]
            raise self._refused(error, private) from None  # its text may quote what was written
        if written is None or not (parts[-1].done or _looped(parts)):
            raise DependencyError("Ollama", f"It ended in the middle of an answer ({self._url}).", "See its log.")
        read, said = written.usage.prompt_tokens, written.usage.completion_tokens
        if read + said > -(-self._actor.num_ctx // PADDED) * PADDED:
            raise self._overlong(f"{read} tokens were read and {said} written: the beginning was dropped.")
        return written

    async def _refuses_overlong(self) -> bool:
        """Whether the server heeds ``UNCUT``; it is asked once."""
        if self._heeds is None:
            self._heeds = await self._client.version() >= REFUSES
        return self._heeds

    def _refused(self, error: Exception, private: Sequence[str]) -> Exception:
        if isinstance(error, ResponseError) and error.status_code == 503:
            return BusyError(_said(error, private))
        if isinstance(error, ResponseError) and error.status_code == 400 and OVERLONG.search(error.error):
            return self._overlong(_said(error, private))
        return refusal(error, self._url, self._model, private)

    def _overlong(self, why: str, also: str = "") -> OperationError:
        what = f"A context does not fit into the window of {self._model}."
        return OperationError(what, why, f"Raise run.<role>.num_ctx, which is {self._actor.num_ctx}{also}.")

    async def _pieces(self, request: GenerateRequest) -> AsyncGenerator[ChatResponse]:
        """The answer as it comes."""
        if not await self._refuses_overlong() and _most_tokens(request) > self._actor.num_ctx:
            why = "It may be too long, and this version of Ollama cuts such prompts without a word."
            raise self._overlong(why, ", or update Ollama")
        stream: Any = await self._client.chat(
            self._model,
            messages(request.turns, request.tools),
            stream=True,
            format=request.schema,
            options=self._options(request),
            logprobs=True,
            top_logprobs=2 if request.margins else None,
            keep_alive=KEEP_ALIVE,
        )
        async for part in stream:
            yield part

    def _options(self, request: GenerateRequest) -> dict[str, Any]:
        return {
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            "seed": request.sampling.seed % 2**31,
            "num_predict": request.sampling.max_tokens,
            "num_ctx": self._actor.num_ctx,
        }

    def _read(self, parts: list[ChatResponse], first_s: float, seconds: float) -> Generation:
        last, entries = parts[-1], [entry for part in parts for entry in part.logprobs or ()]
        text = "".join(part.message.content or "" for part in parts)
        pieces = [entry.token for entry in entries]
        known = [value for entry in entries if (value := logprob(entry.logprob)) is not None]
        spelt = "".join(pieces) == text
        margins = [one for entry in entries for one in margin(top.logprob for top in entry.top_logprobs or ())]
        # models with a parser of their own at the server give calls apart even where none was asked for
        calls = [call.function for part in parts for call in part.message.tool_calls or ()]
        text = "\n".join(filter(None, [text, *(format_call(call.name, call.arguments) for call in calls)]))
        return Generation(
            text=text,
            thinking="".join(part.message.thinking or "" for part in parts),
            logprobs=tuple(known) if len(known) == len(entries) else (),
            finish="stop" if last.done and last.done_reason != "length" else "length",
            usage=Usage(
                prompt_tokens=count_of(last.prompt_eval_count),
                completion_tokens=count_of(last.eval_count) or len(entries),
                wall_s=seconds,
                first_s=first_s,
            ),
            model=self.name,
            ends=tuple(accumulate(map(len, pieces))) if spelt else (),
            margins=tuple(margins) if len(margins) == len(entries) else (),
        )


class _Client(AsyncClient):
    """The official client with what its chat has no arguments for (ollama 0.6.3)."""

    async def version(self) -> tuple[int, ...]:
        """The server's version; of a suffix nothing."""
        found = (await self._request_raw("GET", "/api/version")).json()  # type: ignore[no-untyped-call]
        return tuple(int(part) for part in re.findall(r"\d+", str(found.get("version", "")).partition("-")[0]))

    async def _request(self, cls: Any, *args: Any, **given: Any) -> Any:
        if args == ("POST", "/api/chat"):
            given["json"] = UNCUT | given["json"]
        return await super()._request(cls, *args, **given)


def _most_tokens(request: GenerateRequest) -> int:
    """How many tokens the prompt has at most: each has a byte at least."""
    said = messages(request.turns, request.tools)
    return ABOUT + sum(EACH + len(one["content"].encode()) for one in said)


def _looped(parts: list[ChatResponse]) -> bool:
    """Whether an answer that just stops was stopped for repeating itself."""
    said = [(part.message.content or "").strip() for part in parts[-LOOP:]]
    return len(said) == LOOP and len(set(said)) == 1


async def probe(url: str, model: str, timeout_s: float = 5) -> str:
    """One line on ``model`` as the server at ``url`` has it; nothing is generated.

    Raises:
        DependencyError, TransientError: as ``Ollama.generate``; or what answers is no Ollama.
        OperationError: the model writes no text.
    """
    client = AsyncClient(url, timeout=timeout_s, verify=authorities())
    try:
        found = await client.show(model)
    except FAILURES as error:
        if isinstance(error, ResponseError) and error.status_code in ELSEWHERE and (other := await _other_kind(url)):
            raise OtherServerError("Ollama", f"What answers at {url} is {other}.", ELSEWHERE_FIX) from error
        raise refusal(error, url, model) from error
    finally:
        await client.close()  # type: ignore[no-untyped-call]
    if found.capabilities and "completion" not in found.capabilities:
        why = f"It can: {', '.join(found.capabilities)}."
        raise OperationError(f"The model {model} of Ollama writes no text.", why, f"Run `ollama pull {STUDENT}`.")
    details = found.details
    size = f"{details.parameter_size} {details.quantization_level}" if details else "size unknown"
    return f"{model} ({size}); {', '.join(found.capabilities or ()) or 'capabilities unknown'}"


async def try_chat(actor: ActorConfig, url: str) -> None:
    """Have the model of ``actor`` write one token after the result of a tool call, as a run sends it: a server may
    refuse every chat of a model that it shows. The model is loaded for it, which ``LOAD_S`` are given for.

    Raises:
        OperationError: its template does not take such a conversation.
        DependencyError, TransientError: as ``Ollama.generate``.
    """
    model = Ollama(actor.model_copy(update={"timeout_s": min(actor.timeout_s, LOAD_S)}), url)
    try:
        await model.generate(ATTEMPT)
    except OperationError as error:
        name = model.name.removeprefix("ollama/")
        what = f"The model {name} of Ollama does not take a conversation with the result of a tool call."
        fix = f"See its template: ollama show --template {name}. Or take another: ollama pull {STUDENT}"
        raise OperationError(what, error.why, fix) from None
    finally:
        await model.close()


async def _other_kind(url: str) -> str:
    """The kind of server at ``url``, in words; empty where it is Ollama, or all that it says is that it wants a key."""
    with suppress(DependencyError, TransientError):
        kind = await kind_of(url)
        return "" if kind == "ollama" else "llama.cpp's server"
    async with client_of(url) as client:
        try:
            version, models = await client.get("/api/version"), await client.get("/v1/models")
            found = models.json()
        except FAILURES:
            return "another server"
    said = found.get("error") if isinstance(found, dict) else None
    if models.status_code in KEYLESS and (isinstance(said, dict) or version.status_code not in KEYLESS):
        return "a server of OpenAI's API, which wants a key"  # Ollama's error is a text
    if models.status_code in KEYLESS:
        return ""
    return "a server of OpenAI's API" if isinstance(found, dict) and "data" in found else "another server"


def refusal(error: Exception, url: str, model: str, private: Sequence[str] = ()) -> Agent0Error:
    """Convert an error of the Ollama client into one of ours; what is in ``private`` (texts of the request) is not
    repeated."""
    if isinstance(error, ResponseError):
        return _response(error, model, _said(error, private))
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return TransientError("Ollama took too long.", f"{model} at {url}.", "Raise timeout_s or take a smaller model.")
    if isinstance(error, ConnectionError | httpx.TransportError):
        return DependencyError(
            "Ollama", f"Nothing answers at {url}.", f"Run `ollama serve`, then `ollama pull {model}`."
        )
    said = unquoting(f"{type(error).__name__}: {error}", private)
    return TransientError("Ollama's answer could not be read.", said[:300])


def _said(error: ResponseError, private: Sequence[str]) -> str:
    return f"It said: {unquoting(' '.join(error.error.split()), private)}"[:300]


def _response(error: ResponseError, model: str, why: str) -> Agent0Error:
    if error.status_code == 404:
        return DependencyError(f"The model {model} of Ollama", why, f"Run `ollama pull {model}`.")
    if error.status_code in KEYLESS:
        return AuthError("Ollama refused this client.", why, "Set OLLAMA_API_KEY.")
    if error.status_code == 400:
        tools = "does not support tools" in error.error
        fix = "Take a model that supports tools." if tools else f"See its template: ollama show --template {model}"
        return OperationError(f"Ollama refused a request to {model}.", why, fix)
    return TransientError(f"Ollama failed with status {error.status_code}.", why)
