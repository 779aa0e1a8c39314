"""Who is let in, before any route is asked: by the name under which the server was called, by the page that asks, by
key; and what browsers may not do with what comes back."""

import asyncio
import ipaddress
import secrets
from collections.abc import Collection
from contextlib import ExitStack
from functools import partial
from http.cookies import CookieError, SimpleCookie
from time import monotonic
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent0.api.admission.connections import Seats
from agent0.api.admission.keys import Key, KeyFile
from agent0.api.admission.rates import Rates
from agent0.api.context import ApiContext
from agent0.api.problems import UnknownKeyError, headers_of, problem_of, response_of
from agent0.errors import Agent0Error, AuthError
from agent0.settings import ApiSettings

COOKIE = "agent0_key"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
LOGIN = "/login"
OPEN = ("/healthz", "/version", LOGIN, "/static/")
"""What anybody may ask for: nothing of it is about the data."""
DECISIONS = ("/pause", "/resume", "/cancel", "/promote", "/rollback", "/review", "/delete", "/archive", "/accept")
"""What ends the path of a decision on another's run, checkpoint or folder."""
READS = frozenset({"GET", "HEAD", "OPTIONS"})
_FIXED = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with none, forms of our own pages come with the Origin null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), interest-cohort=()",
}


class Guard:
    """Middleware around the application that decides who is answered. A POST to a path in ``reading`` counts as a
    read; where its body asks for a change, the application calls ``scope["agent0.change"]`` first."""

    def __init__(self, app: ASGIApp, context: ApiContext, reading: Collection[str] = ()) -> None:
        self._app, self._context, self._reading = app, context, reading
        self._rates = Rates(context.settings.api.changes_per_minute)
        self._seats = Seats(context.settings.api.connections_per_address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a problem, or pass on; the response gets its headers either way."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = scope["agent0.nonce"] = secrets.token_urlsafe(16)

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                dress(MutableHeaders(scope=message), nonce)
            await send(message)

        with ExitStack() as seat:
            try:
                key = scope["agent0.key"] = self._admit(scope, Headers(scope=scope))
                trusted = key is not None or not str(scope["path"]).startswith(OPEN)  # admitted: no key is asked for
                seat.enter_context(self._seats.seat(address_of(scope), trusted=trusted))
            except Agent0Error as error:
                if isinstance(error, UnknownKeyError) and _wants_page(scope):
                    await RedirectResponse("/login", 303)(scope, receive, dressed)
                    return
                await response_of(problem_of(error, scope["path"]), headers_of(error))(scope, receive, dressed)
                return
            await self._pass(scope, receive, dressed, key)

    async def _pass(self, scope: Scope, receive: Receive, send: Send, key: Key | None) -> None:
        """Let the application answer; a stream whose key was removed ends here."""
        begun = ended = False

        async def noted(message: Message) -> None:
            nonlocal begun, ended
            begun, ended = True, message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        received = Receiving(receive, self._context.settings.api, self._context.keys, key)
        await self._app(scope, received, noted)
        if received.revoked and begun and not ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _admit(self, scope: Scope, headers: Headers) -> Key | None:
        """The key of a request that may be answered; None where no key is asked for.

        Raises:
            AuthError: it may not. RateError: its key asks too much.
        """
        host = headers.get("host", "")
        if not self._is_ours(name_of(host)):
            fix = "Call it by its address, or name the host in api.hosts."
            raise AuthError("This server is not called so.", f"The Host header says {host[:80]!r}.", fix)
        if not _same_origin(headers, host, str(scope["method"])):
            why = "The Origin or Sec-Fetch-Site header says so."
            raise AuthError("A page of another site asks.", why, "Open the server's own page.")
        key = self._key(scope, headers)
        scope["agent0.change"] = partial(self._admit_change, scope, key)
        if self._method(scope) not in READS and scope["path"] != LOGIN:
            self._admit_change(scope, key)
        return key

    def _method(self, scope: Scope) -> str:
        """The method of a request, that of a read where it only reads."""
        return "GET" if scope["path"] in self._reading else str(scope["method"])

    def _admit_change(self, scope: Scope, key: Key | None) -> None:
        """Count a request that changes something.

        Raises:
            AuthError: its key may not. RateError: its key asks too much.
        """
        if key:
            _check_scope(key, str(scope["method"]), str(scope["path"]))
        self._rates.take(key.name if key else address_of(scope))

    def _is_ours(self, name: str) -> bool:
        settings = self._context.settings.api
        if name in LOOPBACK or name in (settings.host, *settings.hosts):
            return True
        return not self._context.loopback and _is_address(name)  # an address cannot be bound to another one by DNS

    def _key(self, scope: Scope, headers: Headers) -> Key | None:
        keys, path = self._context.keys, str(scope["path"])
        text, by_cookie = _presented_key(headers)
        if not path.startswith(OPEN) and not keys.read() and self._context.loopback:
            return None
        key = keys.find(text) if text else None
        if path.startswith(OPEN):
            return key
        if key is None:
            if text:
                self._context.wrong_keys.take(text, address_of(scope))
            why = "The key that came is not known." if text else "No key came."
            raise UnknownKeyError("This server asks for a key.", why, "Send it as: Authorization: Bearer KEY")
        if scope["method"] not in READS and by_cookie and not headers.get("origin"):
            raise AuthError("Which page asks is unknown.", "A cookie came without an Origin header.")
        _check_scope(key, self._method(scope), path)
        return key


def _check_scope(key: Key, method: str, path: str) -> None:
    if not key.may(needed := scope_needed(method, path)):
        raise AuthError(f"The key {key.name} may not do this.", f"It takes the scope {needed}.")


def address_of(scope: Scope) -> str:
    """Return the address of the client of a request, empty where it has none."""
    return str(scope["client"][0]) if scope.get("client") else ""


def scope_needed(method: str, path: str) -> str:
    """What a key must be allowed to for a request."""
    if path.startswith(("/v1/admin", "/admin", "/v1/config", "/config")) or path.endswith(DECISIONS):
        return "admin"
    return "read" if method in READS else "submit"


def name_of(host: str) -> str:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _presented_key(headers: Headers) -> tuple[str, bool]:
    """The key in a request, and whether it came by cookie."""
    kind, _, text = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return text.strip(), False
    if key := headers.get("x-api-key"):  # as clients of Anthropic's API send it
        return key.strip(), False
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return "", False
    return (cookie.value, True) if cookie else ("", False)


def _same_origin(headers: Headers, host: str, method: str) -> bool:
    """Whether no page of another site asks, other than by a link that is followed. Programs send neither header."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin is not None:
        _, slashes, authority = origin.partition("://")
        if not slashes or authority.lower() != host.lower():
            return False
        if method in READS:
            return True
    return site in ("none", "same-origin") or (
        method in READS and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _wants_page(scope: Scope) -> bool:
    accepts = Headers(raw=scope["headers"]).get("accept", "")
    return scope["method"] == "GET" and "text/html" in accepts and not str(scope["path"]).startswith("/v1")


def dress(headers: MutableHeaders, nonce: str) -> None:
    """Set the headers of every response: no page may load, send or be framed by anything but this server."""
    source = f"'nonce-{nonce}'"
    policy = {
        "default-src": "'none'",
        "script-src": source,
        "style-src": source,
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }
    headers["Content-Security-Policy"] = "; ".join(f"{name} {value}" for name, value in policy.items())
    for name, value in _FIXED.items():
        headers[name] = value
    headers.setdefault("Cache-Control", "private, no-cache")


LOOK_S = 0.5
"""How often it is looked whether the key of a stream is still there."""
DISCONNECT = {"type": "http.disconnect"}


class Receiving:
    """The receiving side of one request with ``key``; an application calls it as it would call ``receive``."""

    def __init__(self, receive: Receive, settings: ApiSettings, keys: KeyFile, key: Key | None) -> None:
        self._receive, self._settings, self._keys, self._key = receive, settings, keys, key
        self._deadline = monotonic() + settings.request_s
        self._bytes, self._whole = 0, False
        self.revoked = False
        """Whether the key was removed while the request was under way."""

    async def __call__(self) -> Message:
        """The next message.

        Raises:
            HTTPException: the body is too long, or it does not come in time.
        """
        if self._whole:
            return await self._until_left()
        try:
            async with asyncio.timeout(self._deadline - monotonic()):
                message = await self._receive()
        except TimeoutError:
            why = f"The body did not come in {self._settings.request_s:g} s (api.request_s)."
            raise HTTPException(408, why, {"Connection": "close"}) from None
        self._bytes += len(message.get("body", b""))
        if self._bytes > self._settings.max_body:
            raise HTTPException(413, f"A body has {self._settings.max_body:,} bytes at most (api.max_body).")
        self._whole = not message.get("more_body", False)
        return message

    async def _until_left(self) -> Message:
        if self._key is None:
            return await self._receive()
        left = asyncio.ensure_future(self._receive())
        try:
            while not left.done():
                if not self._keys.has(self._key):
                    self.revoked = True
                    return DISCONNECT
                await asyncio.wait({left}, timeout=LOOK_S)
            return left.result()
        finally:
            left.cancel()
