"""Pauses keep work, cancelled runs give it up, and a process notices its own end."""

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import nats
import nats.errors
import pytest

from agent0.errors import DependencyError, LogError, TransientError
from agent0.events.alarms import AlarmResolved
from agent0.events.base import Event, Recorded
from agent0.events.runs import RunCancelled, RunPaused, RunResumed
from agent0.infra.bus import bus as bus_module
from agent0.infra.bus.bus import Bus
from agent0.infra.bus.group_commit import Committer
from agent0.infra.log.event_log import Log
from tests.bus.toys import (
    FINISHED,
    STARTED,
    State,
    Toy,
    World,
    event,
    evolve,
    raised,
    resolve,
    short_window,
    soon_again,
)
from tests.patience import PATIENCE_S

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
    async with asyncio.timeout(PATIENCE_S):
        while not toy.calls:
            await asyncio.sleep(0.01)
    await world.put(event(RunCancelled()), raised("new", "r2"))
    await world.until(1, run="r2")
    await world.quiet()
    assert toy.calls == ["a0", "new"] and not await world.stored("AlarmResolved")


# --- watching over ourselves ------------------------------------------------------------------------------------------


@soon_again
@pytest.mark.parametrize("odd", [b"", b"no JSON", b"[]", b"{}", b'{"seq": "x"}'])
async def test_an_answer_that_makes_no_sense_ends_the_process_and_no_reaction_waits(
    world: World, monkeypatch: pytest.MonkeyPatch, odd: bytes
) -> None:
    async def garbled(*_: object) -> bytes:
        return odd

    asked = asyncio.Event()

    async def unheard(cause: Recorded, run: State) -> list[Event]:
        monkeypatch.setattr(world.log._link, "request", garbled)
        if len(toy.calls) == 3:
            asked.set()
        await asked.wait()
        return await resolve(cause, run)

    toy = Toy(unheard)
    await world.put(*(raised(f"a{n}") for n in range(3)))
    bus = await world.bus(toy)
    async with asyncio.timeout(PATIENCE_S):
        while not world.deaths or bus._reactions.busy():
            await asyncio.sleep(0.02)
        with pytest.raises(LogError, match="not stored"):
            await bus.committer.commit([raised("later")])
    assert "effects cannot be stored" in world.deaths[0]
    await world.stop(bus)
    monkeypatch.undo()
    await world.bus(Toy(resolve))  # what the next process finds
    await world.until(3)


async def test_what_waits_to_be_stored_when_a_process_stops_does_not_wait_on(log: Log) -> None:
    committer = Committer(log, 1000)
    committer.start()
    waiting = [asyncio.ensure_future(committer.commit([raised(name)])) for name in "ab"]
    await asyncio.sleep(0.01)
    await committer.stop()
    done, _ = await asyncio.wait(waiting, timeout=PATIENCE_S)
    assert len(done) == 2 and all(one.cancelled() for one in done)


async def test_a_deleted_durable_ends_the_process(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "LOOK_S", 0.05)
    await world.bus(Toy(resolve))
    async with await nats.connect(**world.server.options("admin")) as admin:
        await admin.jsm().delete_consumer("A0_EV", "toy")
    async with asyncio.timeout(PATIENCE_S):
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


@pytest.mark.parametrize(("ahead_s", "says"), [(3600, "3,600 s ahead of"), (-90, "90 s behind")])
async def test_a_process_whose_clock_is_wrong_takes_no_work(world: World, ahead_s: int, says: str) -> None:
    toy = Toy(resolve)
    await world.provision(toy)
    await world.put(raised("a"))

    def clock() -> datetime:
        return datetime.now(UTC) + timedelta(seconds=ahead_s)

    wrong = Bus(world.log, [toy], {}, evolve, world.settings, "rev", clock=clock)
    with pytest.raises(DependencyError, match=f"the right time on .*{says} that of the log's server.*set-ntp"):
        await wrong.start()
    await world.bus(toy)
    [done] = await world.until(1)
    assert toy.calls == ["a"] and abs((done.time - datetime.now(UTC)).total_seconds()) < abs(ahead_s)
