"""The bus on a real server: every cause gets its effects once, whatever is delivered twice, away, paused or killed."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import nats
import pytest
import pytest_asyncio

from agent0.errors import DependencyError, LogError, OperationError, TransientError
from agent0.settings import HandlerSettings, NatsSettings, Settings
from events.alarms import AlarmRaised, AlarmResolved, ReactionFailed, ReactionRetried
from events.base import Event, Recorded, effect_id, record
from events.runs import RunCancelled, RunFinished, RunPaused, RunResumed, RunStarted
from infra import bus as bus_module
from infra.bus import Bus
from infra.bus_react import Reactions
from infra.log import Log
from infra.server import Server
from infra.topology import Topology, init

React = Callable[[Recorded, Any], Awaitable[list[Event]]]


@dataclass(frozen=True)
class State:
    """A toy fold: status and the alarms raised so far."""

    status: str = "running"
    raised: tuple[str, ...] = ()


STATUS = {RunPaused: "paused", RunResumed: "running", RunCancelled: "cancelled", RunFinished: "finished"}


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
        self.buses: list[Bus] = []
        self.deaths: list[str] = []

    async def provision(self, *handlers: Toy) -> None:
        await init(self.server, Topology(self.settings.nats, self.settings.handlers), handlers)

    async def bus(self, *handlers: Toy) -> Bus:
        await self.provision(*handlers)
        bus = Bus(self.log, handlers, {}, evolve, self.settings, "rev", fatal=self.deaths.append)
        self.buses.append(bus)
        await bus.start()
        return bus

    async def stop(self, bus: Bus, grace_s: float = 5) -> None:
        self.buses.remove(bus)
        await bus.stop(grace_s)

    async def put(self, *recorded: Recorded) -> None:
        await self.log.append(recorded)

    async def stored(self, kind: str, run: str = "r1") -> list[Recorded]:
        return [r async for r in self.log.read(run, [kind])]

    async def until(self, number: int, kind: str = "AlarmResolved", run: str = "r1") -> list[Recorded]:
        """Wait for ``number`` events of a kind; exactly so many are there at the end."""
        async with asyncio.timeout(20):
            while len(found := await self.stored(kind, run)) < number:
                await asyncio.sleep(0.02)
        assert len(found) == number
        return found

    async def quiet(self) -> None:
        """Wait until every durable is drained."""
        async with asyncio.timeout(20):
            while not all([await bus.idle() for bus in self.buses]):
                await asyncio.sleep(0.02)


QUICK = HandlerSettings(retry_delay_s=0.01, ack_wait_s=1, max_deliver=3)


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Settings:
    return getattr(request, "param", Settings(handlers=QUICK))


@pytest.fixture
def nats_settings(settings: Settings) -> NatsSettings:
    return settings.nats


@pytest_asyncio.fixture
async def world(nats_server: Server, log: Log, settings: Settings) -> AsyncIterator[World]:
    made = World(nats_server, log, settings)
    yield made
    for bus in list(made.buses):
        await made.stop(bus)


SHORT_WINDOW = Settings(handlers=QUICK, nats=NatsSettings(duplicate_window_s=1))
short_window = pytest.mark.parametrize("settings", [SHORT_WINDOW], indirect=True)


# --- effects ----------------------------------------------------------------------------------------------------------


async def test_effects_are_named_by_their_cause_and_handlers_see_the_state_at_the_cause(world: World) -> None:
    async def tell(cause: Recorded, run: State) -> list[Event]:
        return [AlarmResolved(alarm=cause.event.alarm, message=",".join(run.raised)) for _ in range(2)]  # type: ignore[attr-defined]

    causes = [raised(name) for name in "abc"]
    await world.put(*causes)
    await world.bus(Toy(tell))
    effects = await world.until(6)
    by_id = {effect.id: effect for effect in effects}
    for number, cause in enumerate(causes, 1):
        for n in range(2):
            effect = by_id[effect_id(cause.id, "toy", n)]
            assert (effect.cause, effect.handler, effect.code_rev) == (cause.id, "toy", "rev")
            assert effect.event.message == ",".join("abc"[:number])  # type: ignore[attr-defined]


async def test_an_old_state_is_folded_again_exactly(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.bus_view.RECENT", 8)
    monkeypatch.setattr("infra.bus_view.EVERY", 4)

    async def tell(cause: Recorded, run: State) -> list[Event]:
        return [AlarmResolved(alarm=cause.event.alarm, message=str(len(run.raised)))]  # type: ignore[attr-defined]

    await world.put(*(raised(f"a{n}") for n in range(1, 21)))
    await world.bus(Toy(tell))
    told = {(e.event.alarm, e.event.message) for e in await world.until(20)}  # type: ignore[attr-defined]
    assert told == {(f"a{n}", f"{n}") for n in range(1, 21)}


async def test_reactions_are_committed_in_groups_and_each_stays_whole(world: World) -> None:
    together = asyncio.Event()

    async def three(cause: Recorded, run: State) -> list[Event]:
        if len(toy.calls) == 60:
            together.set()
        await together.wait()
        return [AlarmResolved(alarm=cause.id, message=str(n)) for n in range(3)]

    toy = Toy(three, in_flight=64)
    await world.put(*(raised(f"a{n}") for n in range(60)))
    bus = await world.bus(toy)
    effects = await world.until(180)
    await world.quiet()
    assert bus.committer.reactions == 60 and bus.committer.batches < 10
    wholes = [[e.cause for e in effects[at : at + 3]] for at in range(0, 180, 3)]
    assert all(len(set(whole)) == 1 for whole in wholes)


async def test_one_bad_reaction_does_not_take_others_with_it(world: World) -> None:
    async def sized(cause: Recorded, run: State) -> list[Event]:
        kind = cause.event.alarm  # type: ignore[attr-defined]
        if kind == "many":
            return [AlarmResolved(alarm="x")] * 1001
        return [AlarmResolved(alarm=kind, message="x" * (2_000_000 if kind == "large" else 1))]

    await world.put(*(raised(name) for name in ("a", "large", "b", "many", "c")))
    await world.bus(Toy(sized))
    assert {e.event.alarm for e in await world.until(3)} == {"a", "b", "c"}  # type: ignore[attr-defined]
    failures = {f.event.message.split(".")[0] for f in await world.until(2, "ReactionFailed")}  # type: ignore[attr-defined]
    assert failures == {"An event is too large", "A reaction has too many effects"}


async def test_in_order_means_in_order_and_a_slow_reaction_holds_up_nobody_else(world: World) -> None:
    release = asyncio.Event()

    async def slow(cause: Recorded, run: State) -> list[Event]:
        if cause.event.alarm == "a0":  # type: ignore[attr-defined]
            await release.wait()
        return await resolve(cause, run)

    async def later(cause: Recorded, run: State) -> list[Event]:
        await asyncio.sleep(0.001 * (9 - int(cause.event.alarm[1:])))  # type: ignore[attr-defined]
        return []

    ordered = Toy(later, "ordered", in_flight=1)
    await world.put(*(raised(f"a{n}") for n in range(10)))
    await world.bus(Toy(slow, in_flight=2), ordered)
    await world.until(9)
    release.set()
    await world.until(10)
    await world.quiet()
    assert ordered.calls == [f"a{n}" for n in range(10)]


# --- delivered twice --------------------------------------------------------------------------------------------------


@short_window
async def test_a_message_whose_ack_was_lost_is_not_done_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    acks: list[int] = []
    ack = bus_module._Delivery.ack

    async def lose_the_first(self: Any) -> None:
        acks.append(self.deliveries)
        if self.deliveries > 1:
            await ack(self)

    monkeypatch.setattr(bus_module._Delivery, "ack", lose_the_first)
    toy = Toy(resolve)
    await world.put(raised("a"))
    await world.bus(toy)
    await world.quiet()
    assert acks == [1, 2] and toy.calls == ["a"]
    await world.until(1)


@short_window
@pytest.mark.parametrize("end", [FINISHED, None])
async def test_a_durable_made_again_over_an_old_run_does_nothing(world: World, end: Event | None) -> None:
    async def sometimes(cause: Recorded, run: State) -> list[Event]:
        return await resolve(cause, run)

    toy = Toy(sometimes)
    await world.put(*(raised(f"a{n}") for n in range(20)))
    await world.stop(await world.bus(toy))
    bus = await world.bus(toy)
    await world.until(20)
    if end:
        await world.put(event(end))
    await world.quiet()
    await world.stop(bus)
    calls, last = len(toy.calls), await world.log.last_seq()
    await asyncio.sleep(1.1)  # the duplicate window forgets
    async with await nats.connect(**world.server.options("admin")) as admin:
        await admin.jsm().delete_consumer("A0_EV", "toy")
    await world.bus(toy)
    await world.quiet()
    assert (len(toy.calls), await world.log.last_seq()) == (calls, last)


async def test_processes_on_one_durable_share_the_work(world: World) -> None:
    toys = [Toy(resolve), Toy(resolve)]
    for toy in toys:
        await world.bus(toy)
    await world.put(*(raised(f"a{n}") for n in range(100)))
    await world.until(100)
    await world.quiet()
    counts = Counter(name for toy in toys for name in toy.calls)
    assert set(counts.values()) == {1} and all(toy.calls for toy in toys)


async def test_a_long_reaction_is_delivered_once(world: World) -> None:
    async def long(cause: Recorded, run: State) -> list[Event]:
        await asyncio.sleep(2.2)
        return await resolve(cause, run)

    toy = Toy(long, long=True)
    await world.bus(toy)
    await world.put(raised("a"))
    await world.until(1)
    await world.quiet()
    assert toy.calls == ["a"]
    info = await world.log.client.jsm().consumer_info("A0_EV", "toy")
    assert info.delivered and info.delivered.consumer_seq == 1


async def test_a_message_delivered_again_while_it_is_worked_on_waits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliveries: list[int] = []
    handle = Reactions.handle

    async def count(self: Reactions, handler: Toy, delivery: Any) -> None:
        deliveries.append(delivery.deliveries)
        await handle(self, handler, delivery)

    async def until_redelivered(cause: Recorded, run: State) -> list[Event]:
        async with asyncio.timeout(10):
            while len(deliveries) < 2:
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        return await resolve(cause, run)

    monkeypatch.setattr(bus_module._Delivery, "_beat", lambda self: None)
    monkeypatch.setattr(Reactions, "handle", count)
    toy = Toy(until_redelivered)
    await world.bus(toy)
    await world.put(raised("a"))
    await world.until(1)
    await world.quiet()
    assert toy.calls == ["a"] and deliveries[:2] == [1, 2]


async def test_what_a_stopped_process_left_is_done_by_another(world: World) -> None:
    async def hang(cause: Recorded, run: State) -> list[Event]:
        await asyncio.Event().wait()
        return []

    hanging, working = Toy(hang), Toy(resolve)
    bus = await world.bus(hanging)
    await world.put(*(raised(f"a{n}") for n in range(5)))
    async with asyncio.timeout(10):
        while len(hanging.calls) < 5:
            await asyncio.sleep(0.01)
    await world.stop(bus, grace_s=0.05)
    await world.bus(working)
    await world.until(5)
    assert sorted(working.calls) == [f"a{n}" for n in range(5)]


async def test_a_killed_server_loses_and_doubles_nothing(world: World) -> None:
    await world.bus(Toy(resolve))
    for n in range(60):
        await world.put(raised(f"a{n}"))
        if n == 30:
            os.kill(world.server.pid, signal.SIGKILL)
    effects = await world.until(60)
    assert len({e.id for e in effects}) == 60 and not await world.stored("ReactionFailed")


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_an_error_is_tried_again_and_in_the_end_a_dead_letter_that_can_be_retried(world: World) -> None:
    works = False

    async def flaky(cause: Recorded, run: State) -> list[Event]:
        if not works and cause.event.alarm == "bad":  # type: ignore[attr-defined]
            raise TransientError("The model stuttered.")
        return await resolve(cause, run)

    async def retry() -> None:
        wish = ReactionRetried(failure=f.failure, cause_id=f.cause_id, cause_seq=1, failed_handler="toy")
        await world.put(event(wish))

    toy = Toy(flaky)
    bad = raised("bad")
    await world.put(bad, raised("good"))
    await world.bus(toy)
    [failed] = await world.until(1, "ReactionFailed")
    f = failed.event
    assert isinstance(f, ReactionFailed)
    assert (f.cause_id, f.cause_seq, f.cause_type, f.failed_handler) == (bad.id, 1, "AlarmRaised", "toy")
    assert (f.error, f.deliveries, failed.cause, failed.handler) == ("TransientError", 3, bad.id, "toy")
    assert "The model stuttered." in f.message and "TransientError" in f.traceback
    assert Counter(toy.calls) == {"bad": 3, "good": 1}
    await retry()
    again = (await world.until(2, "ReactionFailed"))[1]
    assert again.event.failure == f.failure and again.id != failed.id  # type: ignore[attr-defined]
    works = True
    await retry()
    await world.until(2)
    await world.quiet()
    assert Counter(toy.calls) == {"bad": 7, "good": 1}


@pytest.mark.parametrize("error", [OperationError("No such prompt."), LogError("Damaged.")])
async def test_an_error_that_no_retry_can_mend_is_a_dead_letter_at_once(world: World, error: Exception) -> None:
    async def fail(cause: Recorded, run: State) -> list[Event]:
        raise error

    toy = Toy(fail)
    await world.put(raised("a"))
    await world.bus(toy)
    [failed] = await world.until(1, "ReactionFailed")
    assert failed.event.deliveries == 1 and toy.calls == ["a"]  # type: ignore[attr-defined]


async def test_what_kills_every_process_that_takes_it_becomes_a_dead_letter(world: World) -> None:
    toy = Toy(resolve)
    await world.provision(toy)
    await world.put(raised("poison"))
    subscription = await world.log.client.jetstream().pull_subscribe_bind(consumer="toy", stream="A0_EV")
    for _ in range(QUICK.max_deliver):  # three processes take it and die before they answer
        await subscription.fetch(1, timeout=5)
    await subscription.unsubscribe()
    await world.bus(toy)
    [failed] = await world.until(1, "ReactionFailed")
    assert failed.event.error == "CrashLoop" and failed.event.failed_handler == "toy"  # type: ignore[attr-defined]
    assert toy.calls == []


async def test_an_absent_dependency_uses_up_no_deliveries_and_is_told_once(world: World) -> None:
    away = True

    async def ask(cause: Recorded, run: State) -> list[Event]:
        if away:
            raise DependencyError("ollama", "Connection refused.")
        return await resolve(cause, run)

    toy = Toy(ask)
    await world.put(*(raised(f"a{n}") for n in range(5)))
    await world.bus(toy)
    async with asyncio.timeout(20):
        while len(toy.calls) < 5 + 2 * QUICK.max_deliver:
            await asyncio.sleep(0.02)
    await asyncio.sleep(QUICK.ack_wait_s * 1.5)  # longer than the server waits for an answer
    away = False
    await world.until(5)
    [lost], [back] = await world.until(1, "DependencyLost"), await world.until(1, "DependencyRestored")
    for told in (lost.event, back.event):
        assert (told.dependency, told.waiting) == ("ollama", "toy")  # type: ignore[attr-defined]
    assert not await world.stored("ReactionFailed") and lost.seq < back.seq
    assert sorted(Counter(toy.calls).values())[:-1] == [2] * 4  # one asked again and again, four waited for it


async def test_another_process_tells_that_a_dependency_is_back(world: World) -> None:
    async def ask(cause: Recorded, run: State) -> list[Event]:
        raise DependencyError("sandbox")

    await world.put(raised("a"))
    for _ in range(2):
        bus = await world.bus(toy := Toy(ask))
        async with asyncio.timeout(10):
            while len(toy.calls) < 3:
                await asyncio.sleep(0.02)
        await world.stop(bus, grace_s=0)
    await world.bus(Toy(resolve))
    await world.until(1)
    await world.until(1, "DependencyRestored")
    await world.until(1, "DependencyLost")


# --- run control ------------------------------------------------------------------------------------------------------


@short_window
async def test_a_paused_run_keeps_its_work_and_does_it_once_when_resumed(world: World) -> None:
    toy = Toy(resolve)
    await world.bus(toy)
    await world.put(event(STARTED), raised("early"))
    await world.until(1)
    await world.put(event(RunPaused()), *(raised(f"a{n}") for n in range(5)), raised("other", "r2"))
    await world.until(1, run="r2")
    await world.quiet()
    assert sorted(toy.calls) == ["early", "other"]
    for _ in range(2):
        await world.put(event(RunResumed()))
        await world.until(6)
        await world.quiet()
    assert Counter(toy.calls) == Counter(["early", "other", *(f"a{n}" for n in range(5))])


async def test_work_left_by_a_pause_survives_the_process(world: World) -> None:
    await world.put(event(RunPaused()), raised("a"), raised("b"))
    first = Toy(resolve, in_flight=1)
    bus = await world.bus(first)
    await world.quiet()
    await world.stop(bus)
    await world.put(event(RunResumed()))
    await world.bus(second := Toy(resolve, in_flight=1))
    await world.until(2)
    assert (first.calls, second.calls) == ([], ["a", "b"])


async def test_a_failure_during_resumption_is_tried_again_and_no_other_reaction_is_repeated(world: World) -> None:
    async def fail(cause: Recorded, run: State) -> list[Event]:
        if cause.event.alarm == "bad":  # type: ignore[attr-defined]
            raise TransientError("No.")
        return await resolve(cause, run)

    toy = Toy(fail)
    await world.put(event(RunPaused()), raised("bad"), raised("good"))
    await world.bus(toy)
    await world.quiet()
    await world.put(event(RunResumed()))
    await world.until(1, "ReactionFailed")
    await world.until(1)
    assert Counter(toy.calls) == {"bad": 3, "good": 1}


async def test_handlers_that_want_control_events_get_them(world: World) -> None:
    async def tell(cause: Recorded, run: State) -> list[Event]:
        return [AlarmResolved(alarm=run.status)]

    facts = [STARTED, RunPaused(), RunResumed(), RunResumed(), FINISHED]
    await world.bus(Toy(tell, events=("RunStarted", "RunPaused", "RunResumed", "RunFinished"), in_flight=1))
    for number, fact in enumerate(facts, 1):
        await world.put(event(fact))
        effects = await world.until(number)
    told = [e.event.alarm for e in effects]  # type: ignore[attr-defined]
    assert told == ["running", "paused", "running", "running", "finished"]


async def test_a_cancelled_run_steals_nothing_from_a_new_one(world: World) -> None:
    async def train(cause: Recorded, run: State) -> list[Event]:
        if cause.run == "r1":
            await asyncio.Event().wait()
        return await resolve(cause, run)

    toy = Toy(train, in_flight=1)
    await world.bus(toy)
    await world.put(*(raised(f"a{n}") for n in range(50)))
    async with asyncio.timeout(10):
        while not toy.calls:
            await asyncio.sleep(0.01)
    await world.put(event(RunCancelled()), raised("new", "r2"))
    await world.until(1, run="r2")
    await world.quiet()
    assert toy.calls == ["a0", "new"] and not await world.stored("AlarmResolved")


# --- watching over ourselves ------------------------------------------------------------------------------------------


async def test_a_deleted_durable_ends_the_process(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "LOOK_S", 0.05)
    await world.bus(Toy(resolve))
    async with await nats.connect(**world.server.options("admin")) as admin:
        await admin.jsm().delete_consumer("A0_EV", "toy")
    async with asyncio.timeout(10):
        while not world.deaths:
            await asyncio.sleep(0.02)
    assert "no consumer toy" in world.deaths[0]


async def test_a_starved_event_loop_ends_the_process(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "STARVED_S", 0.2)
    await world.bus(Toy(resolve))
    time.sleep(1)  # the very thing that must not happen
    assert any("has not turned" in death for death in world.deaths)


async def test_a_start_without_provisioning_is_refused(world: World) -> None:
    bus = Bus(world.log, [Toy(resolve)], {}, evolve, world.settings)
    with pytest.raises(LogError, match="agent0 log init"):
        await bus.start()


async def test_progress_is_lossy_and_no_fact(world: World) -> None:
    bus = await world.bus(Toy(resolve))
    last = await world.log.last_seq()
    listening = world.log.watch_live("r1")
    first = asyncio.ensure_future(anext(listening))
    async with asyncio.timeout(10):
        while not first.done():
            await bus.live("r1", {"tokens": 5})
            await asyncio.sleep(0.01)
    assert first.result() == {"tokens": 5} and await world.log.last_seq() == last
    await listening.aclose()  # type: ignore[attr-defined]
