"""Models of an Ollama server, through its official client and native chat API.

Ollama turns text into tokens itself, control tokens included, so marks that would be such are broken up in task text
and tool output. It gives no token ids: its turns are recorded and scored but never trained on.
"""

import re
import time
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import httpx
from ollama import AsyncClient, ChatResponse, ResponseError

from agent0.chat_format import format_call
from agent0.errors import Agent0Error, AuthError, DependencyError, OperationError, TransientError
from agent0.ports.models import GenerateRequest, Generation, ToolSpec
from agent0.rollout.parsing import parse_turn
from agent0.settings import ActorConfig, StudentConfig
from events.values import Turn, Usage

TEACHER, STUDENT = "qwen2.5:3b", "qwen2.5:7b"
"""Models where none is configured."""

KEEP_ALIVE = "10m"
"""How long the server keeps a model in memory after a call."""

_mark = re.compile(r"<(?=[|/]?[A-Za-z\uff5c|][\w\uff5c|]{0,40}>|\|)|\[(?=/?INST\])")
_call = re.compile(r"<tool_call>.*?(?:</tool_call>|\Z)", re.S)


class Ollama:
    """The ``Model`` port on one model of the Ollama server at ``url``."""

    def __init__(self, actor: ActorConfig, url: str) -> None:
        self._actor = actor
        self._url = url
        self._model = actor.model or (STUDENT if isinstance(actor, StudentConfig) else TEACHER)
        self.name = f"ollama/{self._model}"
        self._client = AsyncClient(url, timeout=httpx.Timeout(actor.timeout_s, connect=min(5.0, actor.timeout_s)))

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one turn. Native tool calls become canonical ``<tool_call>`` text at its end.

        Raises:
            DependencyError: no server, or it lacks the model.
            TransientError: it failed or took longer than ``timeout_s``.
            OperationError: a prefill or an adapter was asked for, or the model refuses the request.
        """
        if request.prefill:
            raise OperationError("Ollama cannot begin a turn with given text.", "Its chat API has no such option.")
        if request.adapter:
            fix = "Make it a model there with `agent0 model push`, or use provider transformers."
            raise OperationError("Ollama loads no adapters by the request.", "It serves models by name.", fix)
        start = time.monotonic()
        try:
            reply = await self._client.chat(
                self._model,
                [_message(turn) for turn in request.turns],
                tools=[_tool(spec) for spec in request.tools] or None,
                options=self._options(request),
                logprobs=True,
                keep_alive=KEEP_ALIVE,
            )
        except (ResponseError, ConnectionError, httpx.HTTPError, ValueError) as error:
            raise refusal(error, self._url, self._model) from error
        return self._read(reply, time.monotonic() - start)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()  # type: ignore[no-untyped-call]

    def _options(self, request: GenerateRequest) -> dict[str, Any]:
        return {
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            "seed": request.sampling.seed % 2**31,
            "num_predict": request.sampling.max_tokens,
            "num_ctx": self._actor.num_ctx,
        }

    def _read(self, reply: ChatResponse, seconds: float) -> Generation:
        calls = [format_call(c.function.name, c.function.arguments) for c in reply.message.tool_calls or ()]
        said = (reply.message.content or "").strip()
        text = "\n".join([said, *calls] if said else calls)
        return Generation(
            text=text,
            logprobs=tuple(entry.logprob for entry in reply.logprobs or ()),
            finish="length" if reply.done_reason == "length" else "stop",
            usage=Usage(
                prompt_tokens=reply.prompt_eval_count or 0,
                completion_tokens=reply.eval_count or 0,
                wall_s=seconds,
            ),
            model=self.name,
            ends=_ends([entry.token for entry in reply.logprobs or ()], text),
        )


def _ends(tokens: Sequence[str], text: str) -> tuple[int, ...]:
    """Where each token ends in ``text``; nothing where they do not spell it, as with calls."""
    whole = "".join(tokens)
    if whole.strip() != text:
        return ()
    before = len(whole) - len(whole.lstrip())
    return tuple(min(max(end - before, 0), len(text)) for end in accumulate(map(len, tokens)))


async def probe(url: str, model: str, timeout_s: float = 5) -> str:
    """One line on ``model`` as the server at ``url`` has it.

    Raises:
        DependencyError, TransientError: as ``Ollama.generate``.
    """
    client = AsyncClient(url, timeout=timeout_s)
    try:
        found = await client.show(model)
    except (ResponseError, ConnectionError, httpx.HTTPError, ValueError) as error:
        raise refusal(error, url, model) from error
    finally:
        await client.close()  # type: ignore[no-untyped-call]
    details = found.details
    size = f"{details.parameter_size} {details.quantization_level}" if details else "size unknown"
    return f"{model} ({size}); {', '.join(found.capabilities or ()) or 'capabilities unknown'}"


def refusal(error: Exception, url: str, model: str) -> Agent0Error:
    """Convert an error of the Ollama client into one of ours."""
    if isinstance(error, ResponseError):
        return _response(error, model)
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return TransientError("Ollama took too long.", f"{model} at {url}.", "Raise timeout_s or take a smaller model.")
    if isinstance(error, ConnectionError | httpx.TransportError):
        return DependencyError(
            "Ollama", f"Nothing answers at {url}.", f"Run `ollama serve`, then `ollama pull {model}`."
        )
    return TransientError("Ollama's answer could not be read.", f"{type(error).__name__}: {error}"[:300])


def _response(error: ResponseError, model: str) -> Agent0Error:
    why = f"It said: {error.error}"[:300]
    if error.status_code == 404:
        return DependencyError(f"The model {model} of Ollama", why, f"Run `ollama pull {model}`.")
    if error.status_code in (401, 403):
        return AuthError("Ollama refused this client.", why, "Set OLLAMA_API_KEY.")
    if error.status_code == 400:
        return OperationError(f"Ollama refused a request to {model}.", why, "Take a model that supports tools.")
    return TransientError(f"Ollama failed with status {error.status_code}.", why)


def harmless(text: str) -> str:
    """``text`` with a zero-width space inside every mark that a chat template could take for its own."""
    return _mark.sub(lambda found: found[0] + "\u200b", text)


def _message(turn: Turn) -> dict[str, Any]:
    """A turn as the chat API wants it: calls apart from the text around them."""
    match turn.role:
        case "assistant":
            calls = [c for c in parse_turn(turn.content).calls if not c.error] if "<tool_call>" in turn.content else []
            said = harmless(_call.sub("", turn.content).strip() if calls else turn.content)
            native = [{"function": {"name": c.name, "arguments": c.arguments}} for c in calls]
            return {"role": "assistant", "content": said} | ({"tool_calls": native} if native else {})
        case "tool":
            return {"role": "tool", "content": harmless(turn.content), "tool_name": turn.name}
        case "user":
            return {"role": "user", "content": harmless(turn.content)}
    return {"role": turn.role, "content": turn.content}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}
