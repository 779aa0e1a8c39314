"""A host that is slow, or stands for a while, is named; others go on, and nothing is in the log twice."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent0.events.base import Event, Recorded
from agent0.infra.bus import processes
from agent0.infra.bus.processes import ask
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server
from agent0.settings import NatsSettings
from tests.bus.toys import SOON, Toy, World, raised, resolve, soon_again
from tests.patience import until
from tests.test_log import Proxy


class Link(Proxy):
    """Each piece is ``delay_s`` under way in either direction; nothing moves while it is not ``up``."""

    def __init__(self, port: int, delay_s: float) -> None:
        super().__init__(port)
        self._delay_s, self.up = delay_s, asyncio.Event()
        self.up.set()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, mutable: bool) -> None:
        try:
            while data := await source.read(65536):
                await asyncio.sleep(self._delay_s)
                await self.up.wait()
                sink.write(data)
                await sink.drain()
        except ConnectionError:
            pass
        finally:
            sink.close()


@asynccontextmanager
async def host(world: World, delay_s: float) -> AsyncIterator[tuple[World, Link]]:
    """Another host on the same log, behind a link of its own."""
    server = world.server
    async with Link(int(server.url.rpartition(":")[2]), delay_s) as link:
        login = NatsSettings(url=link.url, user="app", password=server.password("app"))
        async with await Log.connect(Server(login)) as log:
            far = World(server, log, world.settings)
            far.begun = world.begun
            yield far, link
            link.up.set()
            for bus in list(far.buses):
                await far.stop(bus)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PATIENCE_S", 0.7)


class Slow(Toy):
    """Takes one message, and keeps it until ``go_on``."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

        async def wait(cause: Recorded, run: Any) -> list[Event]:
            await self.go_on.wait()
            return await resolve(cause, run)

        super().__init__(wait, in_flight=1)


async def test_a_slow_link_is_waited_for_by_name_and_others_go_on(world: World) -> None:
    slow, fast = Slow(), Toy(resolve)
    async with host(world, 0.03) as (far, _):
        await far.bus(slow)
        await world.put(raised("slow"))
        await until(lambda: slow.calls, "the slow host to have it in hand")
        await world.bus(fast)
        await world.put(*(raised(f"a{n}") for n in range(20)))
        await world.until(20)
        (waiting,) = [reply for reply in await ask(world.log) if reply.in_hand.get("toy")]
        assert waiting.longest.startswith("toy of AlarmRaised in r1, ") and waiting.in_hand == {"toy": 1}
        slow.go_on.set()
        await world.until(21)
        await world.quiet()
        await far.quiet()
    assert slow.calls == ["slow"] and sorted(fast.calls) == sorted(f"a{n}" for n in range(20))


@soon_again
async def test_what_a_host_that_stands_has_in_hand_comes_again_after_ack_wait_and_is_stored_once(world: World) -> None:
    slow, fast = Slow(), Toy(resolve)
    async with host(world, 0.0) as (far, link):
        await far.bus(slow)
        await world.put(raised("slow"))
        await until(lambda: slow.calls, "the slow host to have it in hand")
        link.up.clear()
        stood = time.monotonic()
        slow.go_on.set()  # it is done, and cannot say so
        await world.bus(fast)
        await world.put(*(raised(f"a{n}") for n in range(20)))
        await until(lambda: "slow" in fast.calls, "it to be delivered again")
        assert time.monotonic() - stood >= SOON.ack_wait_s / 2  # it had said at most so long before that it works
        await world.until(21)
        link.up.set()
        await until(lambda: not far.buses[0]._reactions.busy(), "the slow host to be done")
        await world.until(21)
        await world.quiet()
    assert slow.calls == ["slow"] and sorted(fast.calls) == sorted(["slow", *(f"a{n}" for n in range(20))])
