"""Errors of the vendors' own clients as ours. No message holds the key, or a piece of what was sent."""

import codecs
import math
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

import httpx2

from agent0.errors import (
    AuthError,
    ContextFullError,
    DependencyError,
    NotSentError,
    OtherServerError,
    RefusedError,
    TransientError,
)
from agent0.infra.models.calls.slots import BusyError, ClosedError

WINDOW = 20
"""So many characters of a request in a row, found in a server's message, are a quotation."""
BUSY = (429, 503, 529)
SPENT = ("insufficient_quota", "billing_error")
"""What a server calls an account that has nothing left: to ask again does not help."""
PAGES = ("text/html", "application/xhtml+xml")
"""Content types of pages."""
UNREACHED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol, httpx2.InvalidURL)
CLOSED = "without sending a response"
UNANSWERED = re.compile(f"{CLOSED}|illegal")
_OVERLONG = re.compile(r"context (?:length|window)|too (?:long|many tokens)|maximum.{0,40}tokens", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
"""As variables of keys are named."""
LONGEST_S = 86_400.0
"""Seconds that a busy server can ask to be left alone."""
UNMADE = (404, 405, 501)
"""What a server answers that knows neither the path nor the method."""
START = "Start the server (docs/guide/profiles.md has commands), or correct run.<role>.base_url."


@dataclass(frozen=True)
class ClientErrors:
    """The classes of a client's errors: all of them, those of a status, and those of the connection."""

    any: type[Exception]
    status: type[Exception]
    connection: type[Exception]


def refusal(
    error: Exception, url: str, client: ClientErrors, *, key_env: str = "", private: Iterable[str] = ()
) -> Exception:
    """Convert what a call of the server at ``url`` raised to one of Agent0's errors, or to ``BusyError``.

    ``key_env`` names the variable of the key; what is in ``private`` (the key, texts of the request) is not repeated.
    """
    if isinstance(error, client.status):
        return _status(error, url, key_env, tuple(private))
    reason = error.__cause__ if isinstance(error, client.connection) else error
    if isinstance(reason, UNREACHED):
        return NotSentError("A server of models", f"Nothing answers at {url}.", START)
    if isinstance(reason, httpx2.RemoteProtocolError) and UNANSWERED.search(str(reason)):
        why = f"What listens at {url} closed the connection without an answer in HTTP."
        kind = ClosedError if CLOSED in str(reason) else DependencyError
        return kind("A server of models", why, START)
    if isinstance(error, TimeoutError | httpx2.TimeoutException) or isinstance(reason, httpx2.TimeoutException):
        fix = "Raise timeout_s or take a smaller model."
        return TransientError("The server of models took too long.", f"At {url}.", fix)
    if isinstance(error, (client.any, httpx2.HTTPError)):
        return TransientError("The server's answer ended before it was whole.", f"{type(reason).__name__} at {url}.")
    return TransientError("The server's answer could not be read.", f"{type(error).__name__} at {url}.")


def page_in(url: str, status: int, headers: Mapping[str, str]) -> OtherServerError | None:
    """The error where the server at ``url`` answered a question to a model with a page; None where it is no page."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in PAGES:
        return None
    why = (
        f"What answers at {url} is a server of another kind: a page ({kind}, status {status}) came, no model's answer."
    )
    return OtherServerError("A server of models", why, START)


def sent_elsewhere(server: str, url: str, status: int) -> OtherServerError:
    """The error where a server answers with the address of another one: neither key nor prompt goes there."""
    why = f"What answers at {url} sends requests to another address (status {status}), which is not followed."
    return OtherServerError(server, why, "Name the address that is meant, if you trust it.")


def _after_s(error: Any) -> float:
    """Seconds that a busy server asks to be left alone, or until the moment (HTTP date) it names; 0 where it does not
    say."""
    for header, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(error.response.headers[header]) / divisor
            return min(max(0.0, seconds), LONGEST_S) if not math.isnan(seconds) else 0.0
        except (KeyError, ValueError):
            continue
    try:
        seconds = parsedate_to_datetime(error.response.headers["retry-after"]).timestamp() - time()
        return min(max(0.0, seconds), LONGEST_S)
    except (KeyError, ValueError, OverflowError):
        return 0.0


def unset(variable: str) -> tuple[str, str]:
    """Why there is no key, and what to do. A name that is not one of a variable may be the key itself, and is not
    repeated."""
    if _VARIABLE.fullmatch(variable):
        return f"{variable} is not set.", f"export {variable}=..."
    why = "The environment variable that key_env names is not set; key_env takes its name, not the key."
    return why, "export PROVIDER_KEY=..., then --set run.<role>.key_env=PROVIDER_KEY"


def _status(error: Any, url: str, key_env: str, private: tuple[str, ...]) -> Exception:
    status, why = error.status_code, f"It said: {_server_message(error, private)}"
    if 300 <= status < 400:
        return sent_elsewhere("A server of models", url, status)
    if status in UNMADE and (other := page_in(url, status, error.response.headers)):
        return other
    if status < 400:  # some say in the middle of an answer that it fails
        return TransientError(f"The server at {url} failed in the middle of an answer.", why)
    if status in (401, 403):
        variable = key_env if _VARIABLE.fullmatch(key_env) else "that run.<role>.key_env names"
        fix = f"Set the variable {variable} to a key that it takes." if key_env else "Name one by run.<role>.key_env."
        return AuthError(f"The server at {url} refused the key.", why, fix)
    named = {getattr(error, "code", ""), getattr(error, "type", "")}
    if status in BUSY and not named.intersection(SPENT):
        return BusyError(why, _after_s(error))
    if status >= 500 or status in (408, 409):
        return TransientError(f"The server at {url} failed with status {status}.", why)
    what = f"The server at {url} refused a request with status {status}."
    message, names = _server_message(error, ()), {str(name) for name in named}
    kind = ContextFullError if status not in (402, 404) and _is_overlong(names, message) else RefusedError
    return kind(what, why, _mend(status, names, message))


def _is_overlong(named: set[str], message: str) -> bool:
    """Whether a server says that a request does not fit into its model's context."""
    return "context_length_exceeded" in named or bool(_OVERLONG.search(message))


def _mend(status: int, named: set[str], message: str) -> str:
    """What a user can do about a request that is refused for good."""
    if status == 402 or named.intersection(SPENT):
        return "Top up the account at the vendor, or name another model: run.<role>.fallback."
    if status == 404 or "model_not_found" in named:
        return "Set run.<role>.model to one that it has."
    if _is_overlong(named, message):
        return "Lower run.<role>.max_tokens or run.student.tool_output, or take a model with a larger context."
    return "Compare the settings of run.<role> with what this server takes."


def error_in(answer: object, url: str, private: Iterable[str]) -> Exception | None:
    """The error that the server at ``url`` sent as an answer with status 200; None where it is an answer. ``private``
    texts are not repeated."""
    if not isinstance(answer, dict) or not answer.get("error"):
        return None
    error = answer["error"]
    message = error.get("message") if isinstance(error, dict) else error
    why = f"It said: {unquoting(' '.join(str(message).split())[:300], private)}"
    fix = "See its log. The call is charged as one whose answer was lost."
    return TransientError(f"The server at {url} sent an error as an answer (status 200).", why, fix)


def _server_message(error: Any, private: tuple[str, ...]) -> str:
    body: Any = error.body
    while isinstance(body, dict):
        body = next((body[key] for key in ("message", "error", "detail") if key in body), "nothing")
    message = " ".join(body.split())[:300] if isinstance(body, str) else "nothing that can be read"
    return unquoting(message, private)


def unquoting(message: str, private: Iterable[str]) -> str:
    """Return the ``message`` of a server, or that it is left out because it repeats a part of a ``private`` text."""
    return "(its message quotes the request)" if _quotes(message, private) else message


def _quotes(message: str, private: Iterable[str]) -> bool:
    texts = [" ".join(text.split()) for text in private if text]
    if any(text in message for text in texts if len(text) >= 4):
        return True
    windows = [message[at : at + WINDOW] for at in range(len(message) - WINDOW + 1)]
    return any(window in text for window in windows for text in texts if len(text) >= WINDOW)


async def readable(response: httpx2.Response) -> None:
    """Have ``response`` give UTF-8 alone, as a hook of a client; one that is compressed stays as it is."""
    if isinstance(response.stream, httpx2.AsyncByteStream) and "content-encoding" not in response.headers:
        response.stream = _Readable(response.stream)


class _Readable(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        async for part in self._stream:
            yield decoder.decode(part).encode()
        yield decoder.decode(b"", final=True).encode()

    async def aclose(self) -> None:
        """Close the stream of the server."""
        await self._stream.aclose()
