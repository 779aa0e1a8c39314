"""Limits on connections and concurrent requests. Clients without a key cannot exhaust them for clients with one.

A connection whose request has not come yet is ended by its deadline, or sooner where too many wait: then those whose
last request was answered go first, then the oldest. One that has just come stays long enough to say who asks."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from agent0.api.problems import FullError

WAITING = 256
"""Connections on which no request is under way."""
SEATS, OPEN_SEATS = 512, 256
"""Requests under way at once, and how many of them may be without a key."""
LATE = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"The request did not come in time (api.request_s)."
)


class Connections:
    """Connections of one server that wait for the head of a request."""

    def __init__(self, per_address: int, request_s: float, most: int = WAITING) -> None:
        self.request_s = request_s
        self._per_address, self._most = per_address, most
        self._waiting: dict[str, dict[BoundedProtocol, None]] = {}
        self._all: dict[BoundedProtocol, None] = {}

    def add(self, connection: "BoundedProtocol") -> None:
        """Let ``connection`` wait; where too many do, of its address or in all, one that was answered before is ended,
        or else the oldest."""
        same_address = self._waiting.setdefault(connection.address, {})
        same_address[connection] = self._all[connection] = None
        if len(same_address) > self._per_address:
            _first_to_go(same_address).end()
        elif len(self._all) > self._most:
            _first_to_go(self._all).end()

    def remove(self, connection: "BoundedProtocol") -> None:
        """Forget ``connection``: its request has come, or it is closed."""
        self._all.pop(connection, None)
        same_address = self._waiting.get(connection.address, {})
        same_address.pop(connection, None)
        if not same_address:
            self._waiting.pop(connection.address, None)


def _first_to_go(waiting: Mapping["BoundedProtocol", None]) -> "BoundedProtocol":
    return next((connection for connection in waiting if connection.answered), next(iter(waiting)))


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol, with a deadline for heads and with ``Connections`` that bound how many wait."""

    def __init__(self, connections: Connections, **settings: Any) -> None:
        super().__init__(**settings)
        self._bounds = connections
        self._deadline: asyncio.TimerHandle | None = None
        self.address, self.answered = "", False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Wait for the first request."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Answer a request whose head has come."""
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.answered = True
        if not self.transport.is_closing():
            self._wait()
        super().on_response_complete()

    def end(self) -> None:
        """Close it: it was waiting for too long, or too many are."""
        self._stop_waiting()
        self.transport.close()

    def _wait(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(self._bounds.request_s, self._late)
        self._bounds.add(self)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._bounds.remove(self)

    def _late(self) -> None:
        """Close the connection on timeout, with status 408 where a request was begun."""
        if self.conn.trailing_data[0] and self.conn.our_state is self.conn.their_state:
            self.transport.write(LATE)
        self.end()


class Seats:
    """Requests under way. Those without a key have some of the seats, and each address some of these."""

    def __init__(self, per_address: int, most: int = SEATS, without_key: int = OPEN_SEATS) -> None:
        self._per_address, self._most, self._without_key = per_address, most, without_key
        self._taken = 0
        self._strangers = Counter[str]()

    @contextmanager
    def seat(self, address: str, *, trusted: bool) -> Iterator[None]:
        """A seat for one request; ``trusted``: it has a key, or none is asked for.

        Raises:
            FullError: there is none left.
        """
        if self._taken >= self._most:
            raise FullError("The server is full.", f"{self._most} requests are under way.", "Ask again soon.")
        if not trusted:
            self._require_open(address)
            self._strangers[address] += 1
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1
            if not trusted:
                self._strangers[address] -= 1
                self._strangers += Counter()  # forgets addresses without any

    def _require_open(self, address: str) -> None:
        fix = "Ask with a key, or again soon."
        if self._strangers[address] >= self._per_address:
            why = f"{self._per_address} without a key are under way (api.connections_per_address)."
            raise FullError("This address asks too much at once.", why, fix)
        if self._strangers.total() >= self._without_key:
            raise FullError("The server is full.", "Its other seats are kept for those with a key.", fix)
