"""A process that meets an event of a newer Agent0 takes no more of that run's work, names it, and goes on with others;
a newer process does what was left, once."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from nats.aio.msg import Msg

from agent0.errors import LogError
from agent0.events import base
from agent0.events.alarms import AlarmResolved, DependencyLost
from agent0.events.base import Event, Recorded
from agent0.infra.bus import dispatch, processes, run_consumers
from agent0.infra.bus.processes import SUBJECT, ask
from agent0.infra.log.streams import EVENTS
from tests.bus.toys import Toy, World, raised, resolve
from tests.patience import PATIENCE_S, until

WRITER = "9.1.0+0f3c2d1abcde.clean"


class MoodNoted(Event):
    """What only a newer Agent0 knows."""

    mood: str = "calm"


del base._types["MoodNoted"]
PLAIN = json.loads(raised("newer").to_json())
RESUMED = {**PLAIN, "type": "RunResumed", "data": {}}
NEWER: dict[str, dict[str, Any]] = {
    "a kind": {**PLAIN, "type": "MoodNoted", "data": {"mood": "calm"}},
    "a field": {**PLAIN, "data": {**PLAIN["data"], "mood": "calm"}},
    "a field of the envelope": {**PLAIN, "mood": "calm"},
    "a version": {**PLAIN, "version": 2},
    "a control event": {**RESUMED, "data": {"mood": "calm"}},
}
SAYS = {
    "a kind": "unknown event type 'MoodNoted'",
    "a version": "AlarmRaised version 2 is newer",
    "a control event": "RunResumed has the unknown field mood",
}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_consumers, "LOOK_S", 0.1)
    monkeypatch.setattr(processes, "PATIENCE_S", 0.3)
    monkeypatch.setattr(dispatch, "HAND_BACK_S", 0.1)


async def publish(world: World, kind: str) -> None:
    body = {**NEWER[kind], "id": f"newer {kind}", "code_rev": WRITER}
    await world.log.client.jetstream().publish(f"a0.ev.r1.-.-.{body['type']}", json.dumps(body).encode())


@pytest.mark.parametrize("kind", NEWER)
async def test_it_is_named_and_the_work_of_its_run_is_left_to_others(world: World, kind: str) -> None:
    toy = Toy(resolve)
    await world.bus(toy)
    await world.put(raised("before"))
    await world.until(1)
    await publish(world, kind)
    await until(lambda: world.buses[0].run_consumers._missing.get("r1"), "the run to be refused")
    await world.put(*(raised(f"other {n}", "r2") for n in range(3)))
    await world.log.append([raised("left")])
    await world.until(3, run="r2")
    [reply] = await ask(world.log)
    assert (reply.missing, reply.version) == ({"r1": {"toy": f"Agent0 {WRITER}"}}, "rev")
    async with asyncio.timeout(PATIENCE_S):
        while not (lost := await losses(world)):
            await asyncio.sleep(0.02)
    [told] = lost
    assert told.dependency == f"Agent0 {WRITER}" and told.waiting == "toy"
    for part in (SAYS.get(kind, "AlarmRaised has the unknown field mood"), "Start a process of that version"):
        assert part in told.message
    info = await world.log.client.jsm().consumer_info(EVENTS, "toy-r1")
    left = 1 + (NEWER[kind]["type"] == "AlarmRaised")
    assert info.num_pending + info.num_ack_pending >= left, "what it cannot do was acknowledged"
    assert Counter(toy.calls) == Counter(["before", *(f"other {n}" for n in range(3))])
    assert not world.deaths


async def losses(world: World) -> list[DependencyLost]:
    """What the run's log says is missing, as far as it can be read."""
    found = [r async for r in world.log.read("r1", ["DependencyLost"])]
    return [r.event for r in found if isinstance(r.event, DependencyLost)]


async def test_what_was_left_is_done_once_by_a_process_that_knows_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One reaction is in hand when the event comes: it ends, as what it reacts to was known."""
    go_on = asyncio.Event()

    async def slow(cause: Recorded, run: Any) -> list[Event]:
        await go_on.wait()
        return [AlarmResolved(alarm=getattr(cause.event, "alarm", ""))]

    older, newer = Toy(slow, in_flight=1), Toy(resolve)
    bus = await world.bus(older)
    await world.put(raised("in hand"), raised("waiting"))
    await until(lambda: older.calls, "a reaction to be in hand")
    await publish(world, "a kind")
    await until(lambda: bus.run_consumers._missing.get("r1"), "the run to be refused")
    go_on.set()
    await world.until(1)
    await world.stop(bus)
    monkeypatch.setitem(base._types, "MoodNoted", MoodNoted)
    await world.bus(newer)
    await world.until(2)
    assert (older.calls, newer.calls, world.deaths) == (["in hand"], ["waiting"], [])


async def test_a_reaction_that_meets_it_in_the_log_is_given_back_and_no_failure(world: World) -> None:
    async def read(cause: Recorded, run: Any) -> list[Event]:
        raise LogError("Event 9 cannot be read.") from base.NewerEventError("it has a mood", {}, 9)

    toy = Toy(read)
    await world.bus(toy)
    await world.put(raised("a"))
    async with asyncio.timeout(PATIENCE_S):
        while len(toy.calls) < 2 and not await world.stored("ReactionFailed"):
            await asyncio.sleep(0.1)
    assert not await world.stored("ReactionFailed") and not await world.stored("ReactionTried")


async def test_a_process_of_another_version_is_listed_whatever_else_it_says(world: World) -> None:
    newer = {"host": "h2", "pid": 1, "number": 2, "handlers": ["toy"], "missing": {}, "version": "next", "mood": "new"}

    async def answer(asked: Msg) -> None:
        await world.log.client.publish(asked.reply, json.dumps(newer).encode())

    await world.bus(Toy(resolve))
    listening = await world.log.client.subscribe(SUBJECT, cb=answer)
    assert {reply.version for reply in await ask(world.log)} == {"rev", "next"}
    await listening.unsubscribe()
