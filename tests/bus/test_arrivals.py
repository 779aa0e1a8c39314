"""Messages are taken as they arrive: one request for many stays open, and nothing waits for the last of them."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NothingError

from infra.bus import arrivals
from infra.bus.arrivals import Arrivals


class Client:
    """What a durable's server is sent; ``give`` answers."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.returned: list[tuple[str, bytes]] = []
        self.ended = False
        self._take: Any = None

    def new_inbox(self) -> str:
        return "_INBOX.x"

    async def subscribe(self, inbox: str, cb: Any, **_: Any) -> Any:
        self._take = cb
        return self

    async def unsubscribe(self) -> None:
        self.ended = True

    async def publish(self, subject: str, body: bytes, reply: str = "") -> None:
        if subject.startswith("$JS.ACK"):
            self.returned.append((subject, body))
            return
        assert (subject, reply) == ("$JS.API.CONSUMER.MSG.NEXT.S.d", "_INBOX.x")
        self.asked.append(json.loads(body)["batch"])

    async def give(self, count: int = 1, **status: str) -> None:
        for n in range(count):
            reply = "" if status else f"$JS.ACK.S.d.1.{n}.{n}.0.0"
            headers = {key.replace("_", "-"): value for key, value in status.items()} or None
            await self._take(Msg(_client=self, reply=reply, headers=headers))  # type: ignore[arg-type]


class Link(SimpleNamespace):
    """The bus's connection, as far as it is used."""

    def __init__(self) -> None:
        super().__init__(client=Client(), generation=0)
        self.wake: asyncio.Event | None = None

    def watch(self, wake: asyncio.Event) -> None:
        self.wake = wake

    def unwatch(self, wake: asyncio.Event) -> None:
        self.wake = None


async def opened(most: int = 8) -> tuple[Any, Client, Arrivals]:
    link = Link()
    made = Arrivals(link, "S", "d", most)  # type: ignore[arg-type]
    await made.open()
    return link, link.client, made


async def nothing(made: Arrivals, batch: int = 8, timeout: float = 0.01) -> None:
    with pytest.raises(NothingError):
        await made.fetch(batch, timeout)


async def test_what_has_come_is_given_out_before_the_rest_and_asked_for_again_in_time() -> None:
    _, client, made = await opened()
    first = asyncio.create_task(made.fetch(8, 5))
    await asyncio.sleep(0)
    await client.give(3)
    assert len(await first) == 3 and client.asked == [8]
    await nothing(made, 5)  # whoever has some does not wait for more
    await client.give(1)
    assert len(await made.fetch(8, 5)) == 1 and client.asked == [8]  # four are still on their way
    second = asyncio.create_task(made.fetch(8, 5))
    await asyncio.sleep(0)
    assert client.asked == [8, 4]
    await client.give(8)
    assert len(await second) == 8


async def test_no_more_are_given_out_than_are_wanted() -> None:
    _, client, made = await opened(2)
    await client.give(3)
    assert [len(await made.fetch(2, 5)), len(await made.fetch(2, 5))] == [2, 1]


async def test_a_request_that_expired_is_made_again() -> None:
    _, client, made = await opened()
    await nothing(made)
    waiting = asyncio.create_task(made.fetch(8, 5))
    await asyncio.sleep(0)
    await client.give(1, Status="408", Nats_Pending_Messages="8")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert client.asked == [8, 8, 8]
    await client.give()
    assert len(await waiting) == 1


async def test_a_request_of_an_earlier_connection_is_made_again() -> None:
    link, client, made = await opened()
    waiting = asyncio.create_task(made.fetch(8, 5))
    await asyncio.sleep(0)
    link.generation = 1
    link.wake.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert client.asked == [8, 8]
    await client.give()
    await waiting
    await made.unsubscribe()
    assert client.ended and link.wake is None


async def test_a_refused_request_waits_before_it_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "REFUSED_S", 0.0)
    _, client, made = await opened()
    waiting = asyncio.create_task(made.fetch(8, 5))
    await asyncio.sleep(0)
    await client.give(1, Status="409")
    async with asyncio.timeout(60):
        while len(client.asked) < 2:
            await asyncio.sleep(0)
    await client.give()
    assert len(await waiting) == 1 and client.asked == [8, 8]


async def test_what_nobody_took_is_given_back_at_the_end() -> None:
    _, client, made = await opened()
    await client.give(3)
    assert len(await made.fetch(1, 5)) == 1
    await made.unsubscribe()
    assert client.ended and [body for _, body in client.returned] == [b"-NAK", b"-NAK"]
