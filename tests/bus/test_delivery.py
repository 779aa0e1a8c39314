"""Effects land once and whole, whatever is delivered twice, lost or killed."""

import asyncio
import contextlib
import os
import signal
from collections import Counter
from typing import Any

import nats
import pytest
from nats.js.errors import NotFoundError

from agent0.events.alarms import AlarmResolved
from agent0.events.base import Event, Recorded, effect_id
from agent0.infra.bus import bus as bus_module
from agent0.infra.bus.dispatch import Reactions
from agent0.settings import NatsSettings, Settings
from tests.bus.toys import (
    FINISHED,
    QUICK,
    SOON,
    State,
    Toy,
    World,
    event,
    raised,
    resolve,
    short_window,
    soon_again,
)
from tests.patience import PATIENCE_S

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
    monkeypatch.setattr("agent0.infra.bus.run_views.RECENT", 8)
    monkeypatch.setattr("agent0.infra.bus.run_views.EVERY", 4)

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


@pytest.mark.parametrize("settings", [Settings(handlers=SOON, nats=NatsSettings(duplicate_window_s=1))], indirect=True)
async def test_a_message_whose_ack_was_lost_is_not_done_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    acks: list[int] = []
    ack = bus_module._NatsDelivery.ack

    async def lose_the_first(self: Any) -> None:
        acks.append(self.deliveries)
        if self.deliveries > 1:
            await ack(self)

    monkeypatch.setattr(bus_module._NatsDelivery, "ack", lose_the_first)
    toy = Toy(resolve)
    await world.put(raised("a"))
    await world.bus(toy)
    await world.quiet()
    assert acks[0] == 1 and len(acks) > 1 and toy.calls == ["a"]
    await world.until(1)


@short_window
@pytest.mark.parametrize("end", [FINISHED, None])
async def test_a_consumer_made_again_over_an_old_run_does_nothing(world: World, end: Event | None) -> None:
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
        with contextlib.suppress(NotFoundError):  # of a run that is over the server may have forgotten it
            await admin.jsm().delete_consumer("A0_EV", "toy-r1")
    await world.bus(toy)
    await world.quiet()
    assert (len(toy.calls), await world.log.last_seq()) == (calls, last)


async def test_processes_on_one_consumer_share_the_work(world: World) -> None:
    toys = [Toy(resolve), Toy(resolve)]
    for toy in toys:
        await world.bus(toy)
    await world.put(*(raised(f"a{n}") for n in range(100)))
    await world.until(100)
    await world.quiet()
    counts = Counter(name for toy in toys for name in toy.calls)
    assert set(counts.values()) == {1} and all(toy.calls for toy in toys)


@pytest.mark.parametrize("settings", [Settings(handlers=QUICK.model_copy(update={"ack_wait_s": 4}))], indirect=True)
async def test_a_long_reaction_is_delivered_once(world: World) -> None:
    async def long(cause: Recorded, run: State) -> list[Event]:
        await asyncio.sleep(4.5)  # longer than the server waits, which is so long as a busy machine may stand still
        return await resolve(cause, run)

    toy = Toy(long, long=True)
    await world.bus(toy)
    await world.put(raised("a"))
    await world.until(1)
    await world.quiet()
    assert toy.calls == ["a"]
    info = await world.log.client.jsm().consumer_info("A0_EV", "toy-r1")
    assert info.delivered and info.delivered.consumer_seq == 1


@soon_again
async def test_a_message_delivered_again_while_it_is_worked_on_waits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliveries: list[int] = []
    handle = Reactions.handle

    async def count(self: Reactions, handler: Toy, delivery: Any) -> None:
        deliveries.append(delivery.deliveries)
        await handle(self, handler, delivery)

    async def until_redelivered(cause: Recorded, run: State) -> list[Event]:
        async with asyncio.timeout(PATIENCE_S):
            while len(deliveries) < 2:
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        return await resolve(cause, run)

    monkeypatch.setattr(bus_module._NatsDelivery, "_beat", lambda self: None)
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
    async with asyncio.timeout(PATIENCE_S):
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
