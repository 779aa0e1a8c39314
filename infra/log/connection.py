"""One connection to the log's server: it reconnects for ever and turns the client's errors into ours."""

import asyncio
import contextlib
import logging
import os
import re
import ssl
import sys
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js import JetStreamManager

from agent0.errors import AuthError, DependencyError, bare_url
from agent0.infra.log.nats_server import Role, Server

CONNECT_S = 15.0
ANSWER_S = 5.0
"""How long an answer may take: of a cluster, where another server is then asked."""
PATIENCE = 3
"""How many times as long an embedded server may take: no other would answer in its place."""

_OUT_OF_TIME = re.compile("not yet valid|expired")
_QUOTED = re.compile(r'"([^"]+)"')
_ASKS = re.compile(r'\$js\.api\.consumer\.(msg\.next\.|create\.\w+")')
"""In a refusal: messages of a consumer, or one without a name, were asked for."""

# nats-py turns a connection into one over TLS behind the back of asyncio, which warns of that at each end.
logging.getLogger("asyncio").addFilter(lambda record: "eof_received" not in str(record.msg))

T = TypeVar("T")


class _ForeignServerError(Error):
    """Something else than the log's server answers."""


class TrustingClient(Client):
    """A client that asks, at every connection, whether it is the log's server that answers, before it sends anything:
    another program may have taken the port meanwhile, and would be given the password."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self._log_server = server
        self.foreign_server = ""
        """What answered instead, at the newest try."""

    @property
    def answer_s(self) -> float:
        """How long an answer may take."""
        return ANSWER_S * PATIENCE if self._log_server.folder else ANSWER_S

    def jsm(self, **opts: Any) -> JetStreamManager:
        """What asks for streams and consumers, as patiently as everything else."""
        return super().jsm(**{"timeout": self.answer_s, **opts})

    async def _process_pong(self) -> None:
        """A pong for which nobody waits any more ends nothing: the client would stop reading, and look connected."""
        if self._pongs and self._pongs[0].done():
            self._pongs[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()

    def _connect_command(self) -> bytes:
        """What is sent first. The greeting has come, so the other end is held by what sent it."""
        transport: Any = self._transport
        writer = transport._io_writer
        ours, theirs = writer.get_extra_info("sockname"), writer.get_extra_info("peername")
        self.foreign_server = self._log_server.foreign_listener(ours, theirs)
        if self.foreign_server:
            transport.close()
            raise _ForeignServerError(f"{self.foreign_server} answers on port {theirs[1]}")
        return super()._connect_command()


class Link:
    """A client that remembers what the server refused and wakes those who must know of a reconnection."""

    def __init__(self, server: Server, role: Role = "app") -> None:
        self.client, self._url = TrustingClient(server), server.url
        self.sent_only = role == "reader" and server.folder is not None
        """Whether it may only be sent messages, and ask for none. Of an external server its first refusal says so."""
        self.named = role == "reader"
        """Whether its consumers must have one of the names that readers may use."""
        self.denied = ""
        self.untrusted = ""
        """What is wrong with the server's certificate, at the newest try."""
        self.generation = 0
        """How often the connection was made anew: consumers of an earlier one may be gone."""
        self.refused = asyncio.Event()
        self._watchers: set[asyncio.Event] = set()
        self._lost = asyncio.Event()
        self._asked: set[str] = set()
        self._refused: set[str] = set()
        self.closing = False

    async def close(self) -> None:
        """Flush and close."""
        self.closing = True
        with contextlib.suppress(Error, OSError):  # a server that dies now has what it acknowledged, and no more
            if self.client.is_connected:
                await self._flush()
        with contextlib.suppress(Error, OSError):
            await self.client.close()

    async def _flush(self) -> None:
        """Wait until the server has all that was sent, or the connection is lost."""
        self._lost.clear()
        flushing = asyncio.ensure_future(self.client.flush(ANSWER_S))  # type: ignore[arg-type]  # any number of seconds
        lost = asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait({flushing, lost}, return_when=asyncio.FIRST_COMPLETED)
            if flushing.done():
                flushing.result()
        finally:
            flushing.cancel()
            lost.cancel()

    def watch(self, wake: asyncio.Event) -> None:
        """Set ``wake`` at every reconnection, until ``unwatch``."""
        self._watchers.add(wake)

    def unwatch(self, wake: asyncio.Event) -> None:
        """Leave ``wake`` alone."""
        self._watchers.discard(wake)

    async def request(
        self, subject: str, body: bytes = b"", timeout_s: float = 0, headers: dict[str, str] | None = None
    ) -> bytes:
        """The answer to one request; see ``message``."""
        return (await self.message(subject, body, timeout_s, headers)).data

    async def message(
        self, subject: str, body: bytes = b"", timeout_s: float = 0, headers: dict[str, str] | None = None
    ) -> Msg:
        """The answer to one request with its headers, within ``timeout_s`` (0: as long as an answer may take). Nothing
        is sent while disconnected, and a lost connection is noticed at once.

        Raises:
            TimeoutError: no answer in time; the connection was lost before it came, or the request was refused.
            nats.errors.Error: nobody serves ``subject``.
        """
        timeout_s = timeout_s or self.client.answer_s
        async with asyncio.timeout(timeout_s):
            await self.ready()
            self._lost.clear()
            answer = asyncio.ensure_future(self.client.request(subject, body, timeout=timeout_s, headers=headers))
            lost = asyncio.ensure_future(self._lost.wait())
            try:
                await asyncio.wait({answer, lost}, return_when=asyncio.FIRST_COMPLETED)
                if not answer.done():
                    raise TimeoutError(self.denied or "the connection was lost")
                return answer.result()
            finally:
                answer.cancel()
                lost.cancel()

    async def refused_of(self, subjects: Iterable[str], last: str) -> set[str]:
        """Those of ``subjects`` to which this user may not publish. The server says so; it stores nothing, as what is
        sent is meant for a stream that does not exist. Its answer to the request ``last`` comes after its refusals.

        Raises:
            DependencyError: no answer.
        """
        names = {subject.lower(): subject for subject in subjects}
        self._asked, self._refused = set(names), set()
        try:
            for subject in names.values():
                await self.client.publish(subject, headers={"Nats-Expected-Stream": "RIGHTS"})
            await self.request(last)
        except (Error, TimeoutError) as error:
            raise self.away("ask for this user's rights") from error
        return {names[name] for name in self._refused}

    async def ready(self) -> None:
        """Wait until connected: what is published before that sits in a buffer nobody can look into."""
        while not self.client.is_connected:
            await asyncio.sleep(0.02)

    def away(self, what: str) -> DependencyError | AuthError:
        """Make the error for a request that got no answer; a refusal where the server sent one."""
        if self.denied:
            fix = "Use a role that may do this; only `agent0 log init` works as administrator."
            denied, self.denied = self.denied, ""
            return AuthError(f"The log refused to {what}.", denied, fix)
        if self.client.foreign_server:
            return self.usurped()
        why = f"No answer while trying to {what}."
        return DependencyError("log", why, "Check that nats-server runs (`agent0 doctor`); nothing is lost.")

    def usurped(self) -> DependencyError:
        """The error to raise where another program has the port."""
        why = f"Another program answers at {self._url}: {self.client.foreign_server}. Nothing was sent to it."
        return DependencyError("log", why, "End that program; the log's server is then started again by itself.")

    async def on_error(self, error: Exception) -> None:
        """Callback of the client: refusals arrive here only."""
        text = str(error).lower()
        asked = self._asked.intersection(_QUOTED.findall(text))
        self._refused |= asked
        if asked:
            return
        if isinstance(error, ssl.SSLCertVerificationError):
            self.untrusted = getattr(error, "verify_message", "") or error.reason or "TLS failed"
            self.refused.set()
        elif "permissions violation" in text and _ASKS.search(text):
            self.sent_only = self.named = True  # an external server that keeps this user from asking: read otherwise
            self._lost.set()
            await self.on_reconnect()
        elif "permissions violation" in text:
            self.denied = str(error)
            self._lost.set()
        elif "authorization violation" in text:
            self.refused.set()
        logging.getLogger(__name__).info("log connection: %s", bare_url(str(error)))

    async def on_disconnect(self) -> None:
        """Callback of the client: answers under way will not come."""
        self._lost.set()

    async def on_reconnect(self) -> None:
        """Callback of the client: readers must make their consumers again."""
        self.generation += 1
        for wake in self._watchers:
            wake.set()

    async def on_close(self) -> None:
        """A client that gave up can never work again, and a subscriber on it would spin: end the process."""
        if not self.closing:
            die("the connection to the log was closed for good")


async def connect(server: Server, role: Role, name: str = "agent0") -> Link:
    """Connect to ``server`` as ``role``.

    Raises:
        DependencyError: nobody answers within 10 s.
        AuthError: the credentials are refused.
    """
    link = Link(server, role)
    connecting = asyncio.ensure_future(link.client.connect(**server.options(role), **reconnecting(link), name=name))
    refused = asyncio.ensure_future(link.refused.wait())
    await asyncio.wait({connecting, refused}, timeout=CONNECT_S, return_when=asyncio.FIRST_COMPLETED)
    refused.cancel()
    if connecting.done() and not connecting.exception():
        return link
    connecting.cancel()
    with contextlib.suppress(asyncio.CancelledError, Error, OSError):
        await connecting
    await link.close()
    if link.untrusted:
        fix = "Name the authority that signed it: AGENT0_NATS__TLS_CA=…/ca.pem"
        if _OUT_OF_TIME.search(link.untrusted):
            now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
            fix = f"Here it is {now}. Where that is wrong set the clock, as by `timedatectl set-ntp true`; "
            fix += "else renew the certificate: agent0 cluster keys FOLDER --rotate server"
        raise AuthError("The certificate of the log's server is not trusted.", f"{server.url}: {link.untrusted}.", fix)
    if link.refused.is_set():
        fix = (
            "Check AGENT0_NATS__CREDENTIALS, or AGENT0_NATS__USER and AGENT0_NATS__PASSWORD, or the files in the data "
            "folder; a new key counts once the servers have it (`agent0 cluster keys`)."
        )
        raise AuthError(f"The log refused the credentials of {role}.", "", fix)
    if link.client.foreign_server:
        raise link.usurped()
    raise DependencyError("log", f"{server.url} does not answer.", "Start the server, or correct AGENT0_NATS_URL.")


async def apart(asking: Coroutine[Any, Any, T]) -> T:
    """The result of ``asking``, one of the client's own requests, made in a task of its own.

    The client waits with ``asyncio.wait_for``, which before Python 3.12 loses a cancellation that comes in the same
    turn as the answer: the task that was to end would go on for ever.
    """
    task = asyncio.ensure_future(asking)
    try:
        await asyncio.wait([task])
        return task.result()
    finally:
        task.cancel()


def reconnecting(link: Link) -> dict[str, Any]:
    """Keyword arguments of a client that never gives up (half a second is no ``int``, which nats-py declares)."""
    return {
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.5,
        "ping_interval": 20,
        "pending_size": 16 << 20,
        "error_cb": link.on_error,
        "disconnected_cb": link.on_disconnect,
        "reconnected_cb": link.on_reconnect,
        "closed_cb": link.on_close,
    }


def die(why: str, leave: Callable[[int], None] = os._exit) -> None:
    """End this process where going on could only look like working: a supervisor starts it again."""
    sys.stderr.write(f"agent0: {why}; leaving with status 70\n")
    sys.stderr.flush()
    leave(70)
