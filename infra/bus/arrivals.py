"""What a durable delivers, as it comes: one request for several messages stays open, and whatever has arrived is given
out at once. The client's own ``fetch`` of several keeps those it has until the last arrives, which is late where the
bound on concurrency holds it back; one request a message costs more than most reactions."""

import asyncio
import json
from typing import Any

from nats.aio.msg import Msg
from nats.errors import TimeoutError as NothingError
from nats.js import JetStreamContext

from infra.log.connection import Link

REFUSED_S = 1.0
"""Wait after the server refused a request: its consumer may just be made again."""


class Arrivals:
    """One subscription to a durable; FastStream's pull subscriber calls ``fetch`` and ``unsubscribe``."""

    def __init__(self, link: Link, stream: str, durable: str, most: int) -> None:
        """``most``: messages asked for at a time, the batch size of the subscriber."""
        self._link, self._most = link, most
        self._next, self._inbox = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}", link.client.new_inbox()
        self._subscription: Any = None
        self._arrived: list[Msg] = []
        self._wake = asyncio.Event()
        self._asked, self._refused, self._generation = 0, False, link.generation

    async def open(self) -> None:
        """Subscribe to where messages will be sent."""
        self._subscription = await self._link.client.subscribe(
            self._inbox, cb=self._receive, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
        self._link.watch(self._wake)

    async def unsubscribe(self) -> None:
        """Ask for nothing more, and give back what nobody took: the server forgets requests that nobody listens to."""
        self._link.unwatch(self._wake)
        await self._subscription.unsubscribe()
        for message in self._take(len(self._arrived)):
            await message.nak()

    async def fetch(self, batch: int, timeout: float) -> list[Msg]:
        """What has arrived, at most ``batch`` messages; of nothing the first that arrives within ``timeout`` seconds.
        Who has some already and asks for more (``batch`` less than ``most``) does not wait.

        Raises:
            nats.errors.TimeoutError: there is nothing.
        """
        while not (found := self._take(batch)):
            if batch < self._most:
                raise NothingError
            if self._refused:
                self._refused = False
                await asyncio.sleep(REFUSED_S)
            await self._ask(timeout)
            try:
                async with asyncio.timeout(timeout):
                    await self._wake.wait()
            except TimeoutError:
                self._asked = 0  # what was asked for has expired by now
                raise NothingError from None
        return found

    async def _receive(self, message: Msg) -> None:
        self._arrived.append(message)
        self._wake.set()

    async def _ask(self, timeout: float) -> None:
        """Keep a request open; one that was made over an earlier connection is gone."""
        if self._generation != self._link.generation:
            self._generation, self._asked = self._link.generation, 0
        if self._asked > self._most // 2:
            return
        body = {"batch": self._most - self._asked, "expires": int(timeout * 10**9) - 10**5}
        self._asked = self._most
        await self._link.client.publish(self._next, json.dumps(body).encode(), reply=self._inbox)

    def _take(self, batch: int) -> list[Msg]:
        """Messages that have arrived; what the server says of requests is noted."""
        self._wake.clear()
        found: list[Msg] = []
        for place, message in enumerate(self._arrived):
            if not message.reply.startswith("$JS.ACK"):
                self._note(message.headers or {})
            elif len(found) < batch:
                found.append(message)
            else:
                self._arrived = self._arrived[place:]
                break
        else:
            self._arrived = []
        self._asked = max(0, self._asked - len(found))
        return found

    def _note(self, said: dict[str, Any]) -> None:
        """An expired request is asked again; another end of one is a refusal."""
        if said.get("Status") == "408":
            self._asked = max(0, self._asked - int(said.get("Nats-Pending-Messages", self._most)))
        elif said.get("Status") != "100":
            self._asked, self._refused = 0, True


class Pulling(JetStreamContext):
    """FastStream's context for subscriptions, where a pull subscription is ``Arrivals``."""

    def __init__(self, link: Link, most: dict[str, int]) -> None:
        """``most``: messages asked for at a time, by durable."""
        super().__init__(link.client)
        self._link, self._at_once = link, most

    async def pull_subscribe(self, subject: str, durable: Any = None, stream: Any = None, *_: Any, **__: Any) -> Any:
        """Subscribe to ``durable``, which exists."""
        made = Arrivals(self._link, stream, durable, self._at_once[durable])
        await made.open()
        return made
