"""One connection to the log's server: it reconnects for ever and turns the client's errors into ours."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import nats
from nats.aio.client import Client
from nats.errors import AuthorizationError, Error, NoServersError

from agent0.errors import AuthError, DependencyError
from infra.server import Role, Server

CONNECT_S = 10


class Link:
    """A client with the last refusal the server told it and a counter of reconnections."""

    def __init__(self) -> None:
        self.client = Client()
        self.denied = ""
        self._watchers: set[asyncio.Event] = set()
        self._closing = False

    async def close(self) -> None:
        """Flush and close."""
        self._closing = True
        if self.client.is_connected:
            await self.client.flush()
        await self.client.close()

    def watch(self) -> asyncio.Event:
        """An event that is set at every reconnection; give it back with ``unwatch``."""
        event = asyncio.Event()
        self._watchers.add(event)
        return event

    def unwatch(self, event: asyncio.Event) -> None:
        """Stop setting ``event``."""
        self._watchers.discard(event)

    def away(self, what: str) -> DependencyError | AuthError:
        """The error to raise when a request got no answer: a refusal where the server told of one."""
        if self.denied:
            fix = "Use a role that may do this; only `agent0 log init` works as administrator."
            denied, self.denied = self.denied, ""
            return AuthError(f"The log refused to {what}.", denied, fix)
        why = f"No answer while trying to {what}."
        return DependencyError("log", why, "Check that nats-server runs (`agent0 doctor`); nothing is lost.")

    async def on_error(self, error: Exception) -> None:
        """Callback of the client: refusals arrive here only."""
        if "permissions violation" in str(error).lower():
            self.denied = str(error)
        logging.getLogger(__name__).info("log connection: %s", error)

    async def on_reconnect(self) -> None:
        """Callback of the client: readers must make their consumers again."""
        for event in self._watchers:
            event.set()

    async def on_close(self) -> None:
        """A client that gave up can never work again, and a subscriber on it would spin: end the process."""
        if not self._closing:
            die("the connection to the log was closed for good")


async def connect(server: Server, role: Role, name: str = "agent0") -> Link:
    """Connect to ``server`` as ``role``.

    Raises:
        DependencyError: nobody answers within 10 s.
        AuthError: the credentials are refused.
    """
    link = Link()
    options = server.options(role)
    try:
        await _first(options)
        async with asyncio.timeout(CONNECT_S):
            await link.client.connect(**options, **reconnecting(link), name=f"{name} {role}")
    except AuthorizationError as error:
        raise _refused(role) from error
    except (Error, OSError, TimeoutError) as error:
        why = f"{server.url} does not answer ({type(error).__name__})."
        raise DependencyError("log", why, "Start the server, or correct AGENT0_NATS_URL.") from error
    return link


def reconnecting(link: Link) -> dict[str, Any]:
    """Keyword arguments of a client that never gives up."""
    return {
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.5,
        "ping_interval": 20,
        "pending_size": 16 << 20,
        "error_cb": link.on_error,
        "reconnected_cb": link.on_reconnect,
        "closed_cb": link.on_close,
    }


def die(why: str, leave: Callable[[int], None] = os._exit) -> None:
    """End this process where going on could only look like working: a supervisor starts it again."""
    sys.stderr.write(f"agent0: {why}; leaving with status 70\n")
    sys.stderr.flush()
    leave(70)


async def _first(options: dict[str, Any]) -> None:
    """A trial without reconnection: a client that reconnects for ever hides why it cannot."""
    refusals: list[Exception] = []

    async def note(error: Exception) -> None:
        refusals.append(error)

    try:
        async with asyncio.timeout(CONNECT_S):
            trial = await nats.connect(
                **options, allow_reconnect=False, max_reconnect_attempts=0, connect_timeout=5, error_cb=note
            )
        await trial.close()
    except NoServersError as error:
        raise next((e for e in refusals if "uthorization" in str(e)), error) from error


def _refused(role: Role) -> AuthError:
    fix = "Check user and password (AGENT0_NATS_USER, AGENT0_NATS_PASSWORD) or the files in the data folder."
    return AuthError(f"The log refused the credentials of {role}.", "", fix)
