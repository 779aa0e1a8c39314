"""Models of an Ollama server, through its official client and native chat API.

Calls and their results travel as text (``agent0.infra.models.tool_text``). Ollama turns text into tokens itself and
gives no token ids: its turns are recorded and scored but never trained on.
"""

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from itertools import accumulate
from typing import Any, cast

import httpx
from ollama import AsyncClient, ChatResponse, ResponseError

from agent0.chat_format import format_call
from agent0.errors import Agent0Error, ContextFullError, DependencyError, OperationError, RefusedError
from agent0.events.values import Usage
from agent0.infra.models.calls.counts import count_of, logprob, margin
from agent0.infra.models.calls.slots import BusyError, Slots
from agent0.infra.models.calls.streams import UNREADABLE, Patience, timely
from agent0.infra.models.calls.thinking import heeding
from agent0.infra.models.llama_server import authorities
from agent0.infra.models.ollama.errors import FAILURES, elsewhere, named, refusal, server_message
from agent0.infra.models.ollama.facts import ModelFacts, look, think, window_of
from agent0.infra.models.tool_text import messages
from agent0.ports.models import GenerateRequest, Generation
from agent0.settings import ActorConfig, StudentConfig

log = logging.getLogger(__name__)

TEACHER, STUDENT = "qwen2.5:3b", "qwen2.5:7b"
"""Models where none is configured."""

KEEP_ALIVE = "10m"
"""How long the server keeps a model in memory after a call."""

CONNECT_S = 5.0
UNCUT = {"truncate": False, "shift": False}
"""A server cuts a prompt that does not fit into ``num_ctx``, and a context that is full, unless it is told not to."""
REFUSES = (0, 12, 11)
"""From this version on a server heeds ``UNCUT``."""
ABOUT, EACH = 256, 32
"""Tokens that a chat template adds to a conversation, and to each of its messages, at most."""
PADDED = 256
"""A server rounds its context window up to a multiple of this."""
OVERLONG = re.compile(r"context (size|length)")

SAMPLED = {
    "top_k": 0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Take away the defaults of the server (top_k 40) and of the model's own parameters, as from every other server."""
RELOAD_NS = 200_000_000
"""A call that loads a model takes longer to do so than this."""

LOOP = 30
"""So many equal pieces in a row, and Ollama ends a turn without saying so (llm/llama_server.go)."""


class Ollama:
    """The ``Model`` port on one model of the Ollama server at ``url``; ``actor.parallel`` calls to it at once. One that
    is ``free`` must be computed there: nothing is paid for it, and no prompt leaves that machine."""

    def __init__(self, actor: ActorConfig, url: str, free: bool = True) -> None:
        self._actor, self._free = actor, free
        self._facts: ModelFacts | None = None
        self._window: int | None = None
        self._tells, self._loads = True, 0
        self._url = url
        self._model = actor.model or (STUDENT if isinstance(actor, StudentConfig) else TEACHER)
        self.name = f"ollama/{self._model}"
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=actor.parallel)
        timeout = httpx.Timeout(None, connect=min(CONNECT_S, actor.timeout_s))  # of what is read: ``_pieces``
        self._client = _Client(url, timeout=timeout, limits=limits, verify=authorities(), follow_redirects=False)
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
        return await self._slots.call(lambda: self._written(request), request.turn)

    @property
    def window_note(self) -> str:
        """What is to be said of the context window, once a turn was written; empty where it is as asked."""
        if not self._window or self._window >= self._actor.num_ctx:
            return ""
        return f"its context window is {self._window} tokens, not the {self._actor.num_ctx} of num_ctx"

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
            seconds = (first or start) - start, time.monotonic() - start
            written = self._read(request, parts, *seconds) if parts else None
        except FAILURES as error:
            if isinstance(error, UNREADABLE) and (other := await elsewhere(self._url)):
                raise other from None
            private = [turn.content for turn in request.turns]
            refused = self._refused(error, private)
            if isinstance(refused, Agent0Error):
                refused = await named(refused, self._url, self._model)
            raise refused from None  # its text may quote what was written
        if written is None or not (parts[-1].done or _looped(parts)):
            raise DependencyError("Ollama", f"It ended in the middle of an answer ({self._url}).", "See its log.")
        read, wrote = written.usage.prompt_tokens, written.usage.completion_tokens
        if read + wrote > -(-self._actor.num_ctx // PADDED) * PADDED:
            why = f"{read} tokens were read and {wrote} written: the beginning was dropped."
            raise self._overlong(why, kind=OperationError)
        await self._notice(parts[-1])
        return written

    async def _notice(self, last: ChatResponse) -> None:
        """Say what the server did otherwise than asked: a smaller window, a model that was loaded again."""
        if self._window is None:
            self._window = await window_of(self._url, self._model)
            if self.window_note:
                log.warning("%s at %s: %s", self._model, self._url, self.window_note)
        if (last.load_duration or 0) < RELOAD_NS:
            return
        self._loads += 1
        if self._loads > 1:
            why = "another model, adapter or num_ctx on its base was asked for in between, or its memory"
            log.warning("%s at %s was loaded again (%d times so far): %s", self._model, self._url, self._loads, why)

    async def facts(self) -> ModelFacts:
        """What the server says of the model; it is asked once.

        Raises:
            RefusedError: another machine would compute a model that counts as free.
        """
        if self._facts is None:
            self._facts = await look(self._url, self._model)
        if self._facts.remote and self._free:
            why = f"{self._facts.remote} would, and may charge for it."
            fix = f"Name a model of this machine, or its own name that ends with cloud: `ollama show {self._model}`."
            raise RefusedError(f"The model {self._model} of Ollama is not computed at {self._url}.", why, fix)
        return self._facts

    async def _refuses_overlong(self) -> bool:
        """Whether the server heeds ``UNCUT``; it is asked once."""
        if self._heeds is None:
            self._heeds = await self._client.version() >= REFUSES
        return self._heeds

    def _refused(self, error: Exception, private: Sequence[str]) -> Exception:
        if isinstance(error, ResponseError) and error.status_code == 503:
            return BusyError(server_message(error, private))
        if isinstance(error, ResponseError) and error.status_code == 400 and OVERLONG.search(error.error):
            return self._overlong(server_message(error, private))
        return refusal(error, self._url, self._model, private)

    def _overlong(self, why: str, also: str = "", kind: type[OperationError] = ContextFullError) -> OperationError:
        what = f"A context does not fit into the window of {self._model}."
        return kind(what, why, f"Raise run.<role>.num_ctx, which is {self._actor.num_ctx}{also}.")

    async def _pieces(self, request: GenerateRequest) -> AsyncGenerator[ChatResponse]:
        """The answer as it comes."""
        if not await self._refuses_overlong() and _most_tokens(request) > self._actor.num_ctx:
            why = "It may be too long, and this version of Ollama cuts such prompts without a word."
            raise self._overlong(why, ", or update Ollama")
        facts = await self.facts()
        try:
            async for part in await self._stream(request, facts):
                yield part
        except ResponseError as error:
            if not self._tells or error.status_code != 400 or "logprobs" not in error.error:
                raise
            self._tells = False
            log.warning("%s at %s tells no log-probabilities: %s", self._model, self._url, error.error[:200])
            async for part in await self._stream(request, facts):
                yield part

    async def _stream(self, request: GenerateRequest, facts: ModelFacts) -> AsyncIterator[ChatResponse]:
        thinks: Any = think(self._actor.thinking, facts, self._model)
        stream: Any = await self._client.chat(
            self._model,
            messages(request.turns, request.tools),
            stream=True,
            think=thinks,
            format=request.schema,
            options=self._options(heeding(request, thinks is not False), facts),
            logprobs=True if self._tells else None,
            top_logprobs=2 if request.margins and self._tells else None,
            keep_alive=KEEP_ALIVE,
        )
        return cast(AsyncIterator[ChatResponse], stream)

    def _options(self, request: GenerateRequest, facts: ModelFacts) -> dict[str, object]:
        stops = (*facts.stops, *request.sampling.stop)  # those of a request take the place of the model's own
        return {
            **SAMPLED,
            **({"stop": list(stops)} if request.sampling.stop else {}),
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            "seed": request.sampling.seed % 2**31,
            "num_predict": request.sampling.max_tokens,
            "num_ctx": self._actor.num_ctx,
        }

    def _read(self, request: GenerateRequest, parts: list[ChatResponse], first_s: float, seconds: float) -> Generation:
        last, entries = parts[-1], [entry for part in parts for entry in part.logprobs or ()]
        text = "".join(part.message.content or "" for part in parts)
        pieces = [entry.token for entry in entries]
        logprobs = [value for entry in entries if (value := logprob(entry.logprob)) is not None]
        spelt = "".join(pieces) == text
        margins = [gap for entry in entries for gap in margin(top.logprob for top in entry.top_logprobs or ())]
        # models with a parser of their own at the server give calls apart even where none was asked for
        calls = [call.function for part in parts for call in part.message.tool_calls or ()]
        text = "\n".join(filter(None, [text, *(format_call(call.name, call.arguments) for call in calls)]))
        thoughts = [part.message.thinking for part in parts if part.message.thinking]
        # with a format a thinking model is asked twice, and only the second answer is counted
        uncounted = len(thoughts) if request.schema else 0
        usage = Usage(
            prompt_tokens=count_of(last.prompt_eval_count),
            completion_tokens=(count_of(last.eval_count) or len(entries)) + uncounted,
            wall_s=seconds,
            first_s=first_s,
        )
        return Generation(
            text=text,
            thinking="".join(thoughts),
            logprobs=tuple(logprobs) if len(logprobs) == len(entries) else (),
            finish="stop" if last.done and last.done_reason != "length" else "length",
            usage=usage,
            model=self.name,
            capture="logprobs" if entries else "text",
            counted={"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens},
            ends=tuple(accumulate(map(len, pieces))) if spelt else (),
            margins=tuple(margins) if len(margins) == len(entries) else (),
        )


class _Client(AsyncClient):
    """The official client with what its chat has no arguments for (ollama 0.6.3)."""

    async def version(self) -> tuple[int, ...]:
        """The server's version; of a suffix nothing."""
        answer = (await self._request_raw("GET", "/api/version")).json()  # type: ignore[no-untyped-call]
        return tuple(int(part) for part in re.findall(r"\d+", str(answer.get("version", "")).partition("-")[0]))

    async def _request(self, cls: Any, *args: Any, **options: Any) -> Any:
        if args == ("POST", "/api/chat"):
            options["json"] = UNCUT | options["json"]
        return await super()._request(cls, *args, **options)


def _most_tokens(request: GenerateRequest) -> int:
    """How many tokens the prompt has at most: each has a byte at least."""
    written = messages(request.turns, request.tools)
    return ABOUT + sum(EACH + len(message["content"].encode()) for message in written)


def _looped(parts: list[ChatResponse]) -> bool:
    """Whether an answer that just stops was stopped for repeating itself."""
    texts = [(part.message.content or "").strip() for part in parts[-LOOP:]]
    return len(texts) == LOOP and len(set(texts)) == 1
