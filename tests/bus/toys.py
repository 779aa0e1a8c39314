"""Toy handlers, a toy fold, and a world in which buses come and go."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agent0.events.alarms import AlarmRaised, AlarmResolved
from agent0.events.base import Event, Recorded, record
from agent0.events.runs import RunCancelled, RunFailed, RunFinished, RunPaused, RunResumed, RunStarted
from agent0.infra.bus.affinity import ModelOf, loads_nothing
from agent0.infra.bus.bus import Bus
from agent0.infra.bus.run_consumers import Lacks, lacks_nothing
from agent0.infra.log.event_log import Log
from agent0.infra.log.folding import Evolve
from agent0.infra.log.nats_server import Server
from agent0.infra.log.streams import Topology, init
from agent0.settings import HandlerSettings, NatsSettings, Settings
from tests.patience import PATIENCE_S

React = Callable[[Recorded, Any], Awaitable[list[Event]]]


@dataclass(frozen=True)
class State:
    """A toy fold: status and the alarms raised so far."""

    status: str = "running"
    raised: tuple[str, ...] = ()


STATUS = {
    RunPaused: "paused",
    RunResumed: "running",
    RunFailed: "failed",
    RunCancelled: "cancelled",
    RunFinished: "finished",
}


def evolve(state: State | None, recorded: Recorded) -> State | None:
    event, state = recorded.event, state or State()
    if isinstance(event, AlarmRaised):
        return replace(state, raised=(*state.raised, event.alarm))
    return replace(state, status=STATUS.get(type(event), state.status))


@dataclass
class Toy:
    """A handler with nothing but the attributes that the bus looks at."""

    react: React
    name: str = "toy"
    events: tuple[str, ...] = ("AlarmRaised",)
    ports: tuple[str, ...] = ()
    in_flight: int = 16
    long: bool = False
    calls: list[str] = field(default_factory=list)

    async def __call__(self, cause: Recorded, run: Any, ports: Mapping[str, Any]) -> list[Event]:
        self.calls.append(cause.event.alarm if isinstance(cause.event, AlarmRaised) else cause.type)
        return await self.react(cause, run)


async def resolve(cause: Recorded, run: Any) -> list[Event]:
    return [AlarmResolved(alarm=cause.event.alarm)]  # type: ignore[attr-defined]


def raised(name: str, run: str = "r1") -> Recorded:
    return event(AlarmRaised(alarm=name, severity="info", message=""), run)


def event(fact: Event, run: str = "r1") -> Recorded:
    return record(fact, run=run, time=datetime.now(UTC))


FINISHED = RunFinished(iterations=1, tasks=1, attempts=1, state_sha="")
STARTED = RunStarted(name="n", profile="p", seed=0, config={}, config_sha="")


class World:
    """A log, and processes (buses) that come and go on it."""

    def __init__(self, server: Server, log: Log, settings: Settings) -> None:
        self.server, self.log, self.settings = server, log, settings
        self.begun: set[str] = set()
        self.buses: list[Bus] = []
        self.deaths: list[str] = []

    async def provision(self, *handlers: Toy) -> None:
        await init(self.server, Topology(self.settings.nats, self.settings.handlers), handlers)

    async def bus(
        self,
        *handlers: Toy,
        evolve: Evolve = evolve,
        lacks: Lacks = lacks_nothing,
        model_of: ModelOf = loads_nothing,
    ) -> Bus:
        await self.provision(*handlers)
        more = {"lacks": lacks, "model_of": model_of}
        bus = Bus(self.log, handlers, {}, evolve, self.settings, "rev", fatal=self.deaths.append, **more)
        self.buses.append(bus)
        await bus.start()
        return bus

    async def stop(self, bus: Bus, grace_s: float = 5) -> None:
        self.buses.remove(bus)
        await bus.stop(grace_s)

    async def put(self, *recorded: Recorded) -> None:
        """Append these; a run begins with its first event, where it does not say so itself."""
        events: list[Recorded] = []
        for one in recorded:
            if one.run not in self.begun and not isinstance(one.event, RunStarted):
                events.append(event(STARTED, one.run))
            self.begun.add(one.run)
            events.append(one)
        await self.log.append(events)

    async def stored(self, kind: str, run: str = "r1") -> list[Recorded]:
        return [r async for r in self.log.read(run, [kind])]

    async def until(self, number: int, kind: str = "AlarmResolved", run: str = "r1") -> list[Recorded]:
        """Wait for ``number`` events of a kind; exactly so many are there at the end."""
        async with asyncio.timeout(PATIENCE_S):
            while len(found := await self.stored(kind, run)) < number:
                await asyncio.sleep(POLL_S)
        assert len(found) == number
        return found

    async def until_any(self, number: int, *kinds: str) -> None:
        """Wait for at least ``number`` events of these kinds together."""
        async with asyncio.timeout(PATIENCE_S):
            while sum([len(await self.stored(kind)) for kind in kinds]) < number:
                await asyncio.sleep(POLL_S)

    async def quiet(self) -> None:
        """Wait until every durable is drained."""
        async with asyncio.timeout(PATIENCE_S):
            while not all([await bus.idle() for bus in self.buses]):
                await asyncio.sleep(0.02)


POLL_S = 0.1
"""Each look at the log is a consumer that the server keeps for 20 s, and it keeps so many only."""
QUICK = HandlerSettings(retry_delay_s=0.01, ack_wait_s=15, max_deliver=3)
"""A busy machine may stand still for seconds, and nothing is to be delivered again because of that."""

SOON = QUICK.model_copy(update={"ack_wait_s": 1})
soon_again = pytest.mark.parametrize("settings", [Settings(handlers=SOON)], indirect=True)
"""For tests of what is delivered again because nothing was heard of it."""

SHORT_WINDOW = Settings(handlers=QUICK, nats=NatsSettings(duplicate_window_s=1))
short_window = pytest.mark.parametrize("settings", [SHORT_WINDOW], indirect=True)
