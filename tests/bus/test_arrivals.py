"""Messages are taken as they arrive and as there are slots: requests stay open, and nothing waits for the last."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NothingError

from agent0.infra.bus import arrivals
from agent0.infra.bus.arrivals import Arrivals


class Client:
    """What the server of some consumers is sent; ``give`` answers."""

    is_connected = True

    def __init__(self) -> None:
        self.asked: dict[str, list[int]] = {}
        self.returned: list[tuple[str, bytes]] = []
        self.inboxes: dict[str, Any] = {}
        self._consumers: dict[str, str] = {}
        self._numbers = iter(range(1000))

    def new_inbox(self) -> str:
        return f"_INBOX.{next(self._numbers)}"

    async def subscribe(self, inbox: str, cb: Any, **_: Any) -> Any:
        self.inboxes[inbox] = cb

        async def end() -> None:
            del self.inboxes[inbox]

        return SimpleNamespace(drain=end, unsubscribe=end)

    async def publish(self, subject: str, body: bytes, reply: str = "") -> None:
        if subject.startswith("$JS.ACK"):
            self.returned.append((subject, body))
            return
        consumer = subject.removeprefix("$JS.API.CONSUMER.MSG.NEXT.S.")
        self._consumers[consumer] = reply
        self.asked.setdefault(consumer, []).append(json.loads(body)["batch"])

    async def give(self, count: int = 1, consumer: str = "d", **status: str) -> None:
        for _ in range(count):
            reply = "" if status else f"$JS.ACK.S.{consumer}.1.{next(self._numbers)}.1.0.0"
            headers = {key.replace("_", "-"): value for key, value in status.items()} or None
            take = self.inboxes[self._consumers[consumer]]
            await take(Msg(_client=self, reply=reply, headers=headers))  # type: ignore[arg-type]


class Link(SimpleNamespace):
    """The bus's connection, as far as it is used."""

    def __init__(self) -> None:
        super().__init__(client=Client(), generation=0)
        self.wake: asyncio.Event | None = None

    def watch(self, wake: asyncio.Event) -> None:
        self.wake = wake

    def unwatch(self, wake: asyncio.Event) -> None:
        self.wake = None


async def opened(slots: int = 8) -> tuple[Any, Client, Arrivals]:
    link = Link()
    arriving = Arrivals(link, "S", "d", slots)  # type: ignore[arg-type]
    await arriving.open()
    return link, link.client, arriving


async def nothing(arriving: Arrivals, batch: int = 8, timeout: float = 0.01) -> None:
    with pytest.raises(NothingError):
        await arriving.fetch(batch, timeout)


async def soon(arriving: Arrivals, slots: int = 8) -> asyncio.Task[list[Msg]]:
    task = asyncio.create_task(arriving.fetch(slots, 5))
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def test_as_many_are_asked_for_as_there_are_free_slots() -> None:
    _, client, arriving = await opened()
    first = await soon(arriving)
    assert client.asked == {"d": [1]}, "nothing is known to wait"
    await client.give()
    messages = await first
    await nothing(arriving, 7)  # whoever has some does not wait for more
    second = await soon(arriving)
    assert client.asked == {"d": [1, 7]}, "one is being worked on"
    await client.give(7)
    messages += await second
    third = await soon(arriving)
    assert client.asked == {"d": [1, 7]} and not third.done(), "no slot is free"
    for message in messages[:5]:
        arriving.end(message)
    for _ in range(3):
        await asyncio.sleep(0)
    assert client.asked == {"d": [1, 7, 5]}
    third.cancel()


async def test_runs_have_slots_in_turn() -> None:
    _, client, arriving = await opened(4)
    await arriving.add("r1", "d-r1")
    await arriving.add("r2", "d-r2")
    first = await soon(arriving, 4)
    assert client.asked == {"d": [1], "d-r1": [1], "d-r2": [1]}
    await client.give(1, "d-r1")
    large = await first
    waiting = await soon(arriving, 4)
    await client.give(3, "d-r1")
    large += await waiting
    full = await soon(arriving, 4)
    await client.give(2, "d-r1")
    await client.give(1, "d-r2")
    arriving.end(large[0])
    (message,) = await full
    assert ".d-r2." in message.reply, "the run that has the fewest is next"


async def test_a_request_that_expired_is_made_again() -> None:
    _, client, arriving = await opened()
    waiting = await soon(arriving)
    await client.give(1, Status="408", Nats_Pending_Messages="1")
    for _ in range(3):
        await asyncio.sleep(0)
    assert client.asked == {"d": [1, 1]}
    await client.give()
    assert len(await waiting) == 1


async def test_a_request_of_an_earlier_connection_is_made_again() -> None:
    link, client, arriving = await opened()
    waiting = await soon(arriving)
    link.generation = 1
    link.wake.set()
    for _ in range(3):
        await asyncio.sleep(0)
    assert client.asked == {"d": [1, 1]}
    await client.give()
    await waiting
    await arriving.unsubscribe()
    assert not client.inboxes and link.wake is None


async def test_a_refused_request_waits_before_it_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "REFUSED_S", 0.0)
    _, client, arriving = await opened()
    await arriving.add("r1", "d-r1")
    waiting = await soon(arriving)
    await client.give(1, "d-r1", Status="409")
    assert arriving.refused("r1")
    async with asyncio.timeout(60):
        while len(client.asked["d-r1"]) < 2:
            await asyncio.sleep(0)
    await client.give(1, "d-r1")
    assert len(await waiting) == 1 and not arriving.refused("r1")


async def test_what_nobody_began_is_given_back_at_the_end_and_when_its_run_stops() -> None:
    _, client, arriving = await opened(2)
    await arriving.add("r1", "d-r1")
    waiting = await soon(arriving, 2)
    await client.give(1)
    (begun,) = await waiting
    arriving.begin(begun)
    (unheard,) = await _next(client, arriving)
    await client.give(1, "d-r1")
    await arriving.remove("r1")
    assert [body for _, body in client.returned] == [b"-NAK"]
    await arriving.unsubscribe()
    assert [subject for subject, _ in client.returned][1:] == [unheard.reply], "what was begun is left to who began it"


async def _next(client: Client, arriving: Arrivals) -> list[Msg]:
    waiting = await soon(arriving, 2)
    await client.give(1)
    return await waiting


async def test_what_finds_no_slot_is_given_back_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "HOLD_S", 0.01)
    _, client, arriving = await opened(1)
    await arriving.add("r1", "d-r1")
    waiting = await soon(arriving, 1)
    await client.give(1)
    (long,) = await waiting
    arriving.begin(long)
    waiting = await soon(arriving, 1)
    await client.give(1, "d-r1")
    async with asyncio.timeout(60):
        while not client.returned:
            await asyncio.sleep(0.01)
    assert not waiting.done()
    waiting.cancel()
