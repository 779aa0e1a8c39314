"""Errors of the Ollama client, and of what is no Ollama, as ours."""

from collections.abc import Sequence
from contextlib import suppress

import httpx
from ollama import ResponseError

from agent0.errors import Agent0Error, AuthError, DependencyError, OperationError, OtherServerError, TransientError
from agent0.infra.models.calls.refusals import sent_elsewhere, unquoting
from agent0.infra.models.calls.streams import UNREADABLE
from agent0.infra.models.llama_server import client_of, kind_of
from agent0.infra.models.ollama.facts import names

FAILURES: tuple[type[Exception], ...] = (ResponseError, ConnectionError, TimeoutError, httpx.HTTPError, *UNREADABLE)
KEYLESS = (401, 403)
ELSEWHERE = (*KEYLESS, 404, 405, 501)
"""What other servers answer to a question that is Ollama's alone."""
ELSEWHERE_FIX = "Set models.ollama_url, or use provider openai."
MOST_NAMES = 20


class MissingModelError(DependencyError):
    """Raised where the server does not have the model that is asked for."""


async def named(error: Agent0Error, url: str, model: str) -> Agent0Error:
    """``error``; where a model is missing, with the names of those that are there."""
    if not isinstance(error, MissingModelError) or not (there := await names(url)):
        return error
    listed = ", ".join(there[:MOST_NAMES]) + (" …" if len(there) > MOST_NAMES else "")
    fix = f"It has: {listed}. Set run.<role>.model to one of them, or run `ollama pull {model}`."
    return MissingModelError(error.dependency, error.why, fix)


async def elsewhere(url: str) -> OtherServerError | None:
    """The error where what answers at ``url`` is no Ollama."""
    other = await other_kind(url)
    return OtherServerError("Ollama", f"What answers at {url} is {other}.", ELSEWHERE_FIX) if other else None


def refusal(error: Exception, url: str, model: str, private: Sequence[str] = ()) -> Agent0Error:
    """Convert an error of the Ollama client into one of ours; what is in ``private`` (texts of the request) is not
    repeated."""
    if isinstance(error, ResponseError) and 300 <= error.status_code < 400:
        return sent_elsewhere("Ollama", url, error.status_code)
    if isinstance(error, ResponseError):
        return _response(error, model, server_message(error, private))
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return TransientError("Ollama took too long.", f"{model} at {url}.", "Raise timeout_s or take a smaller model.")
    if isinstance(error, ConnectionError | httpx.TransportError):
        return DependencyError(
            "Ollama", f"Nothing answers at {url}.", f"Run `ollama serve`, then `ollama pull {model}`."
        )
    why = unquoting(f"{type(error).__name__}: {error}", private)
    return TransientError("Ollama's answer could not be read.", why[:300])


def server_message(error: ResponseError, private: Sequence[str]) -> str:
    """What the server said, unless it quotes a ``private`` text."""
    return f"It said: {unquoting(' '.join(error.error.split()), private)}"[:300]


def _response(error: ResponseError, model: str, why: str) -> Agent0Error:
    if error.status_code == 404:
        return MissingModelError(f"The model {model} of Ollama", why, f"Run `ollama pull {model}`.")
    if error.status_code in KEYLESS:
        return AuthError("Ollama refused this client.", why, "Set OLLAMA_API_KEY.")
    if error.status_code == 400:
        tools = "does not support tools" in error.error
        fix = "Take a model that supports tools." if tools else f"See its template: ollama show --template {model}"
        return OperationError(f"Ollama refused a request to {model}.", why, fix)
    return TransientError(f"Ollama failed with status {error.status_code}.", why)


async def other_kind(url: str) -> str:
    """The kind of server at ``url``, in words; empty where it is Ollama, or all that it says is that it wants a key."""
    with suppress(DependencyError, TransientError):
        kind = await kind_of(url)
        return "" if kind == "ollama" else "llama.cpp's server"
    async with client_of(url) as client:
        try:
            version, models = await client.get("/api/version"), await client.get("/v1/models")
            body = models.json()
        except FAILURES:
            return "another server"
    message = body.get("error") if isinstance(body, dict) else None
    if models.status_code in KEYLESS and (isinstance(message, dict) or version.status_code not in KEYLESS):
        return "a server of OpenAI's API, which wants a key"  # Ollama's error is a text
    if models.status_code in KEYLESS:
        return ""
    return "a server of OpenAI's API" if isinstance(body, dict) and "data" in body else "another server"
