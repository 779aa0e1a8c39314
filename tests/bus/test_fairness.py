"""Runs share the slots of processes by their priorities, and models are loaded by few: over a real server."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from agent0.events.base import Event, Recorded
from agent0.events.runs import PriorityChanged
from agent0.infra.bus import affinity, arrivals, processes, run_consumers
from agent0.infra.bus.bus import Bus
from agent0.infra.log.streams import EVENTS
from agent0.settings import Settings
from tests.bus.toys import QUICK, STARTED, State, Toy, World, event, raised, resolve, soon_again
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_consumers, "DIVIDE_S", 0.1)
    monkeypatch.setattr(processes, "PATIENCE_S", 0.2)


ONE_SLOT = Settings(handlers=QUICK.model_copy(update={"in_flight": 1}))
one_slot = pytest.mark.parametrize("settings", [ONE_SLOT], indirect=True)


def model_of(handler: Any, state: State | None) -> str:
    """That of a toy run: the first letter of its alarms."""
    return state.raised[0][0] if state and state.raised else ""


class Steps:
    """Reactions that each wait for a permit."""

    def __init__(self) -> None:
        self.permits = asyncio.Semaphore(0)

    async def __call__(self, cause: Recorded, run: State) -> list[Event]:
        await self.permits.acquire()
        return await resolve(cause, run)


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


async def work(world: World, letter: str, count: int, priority: int = 10) -> None:
    run = f"run-{letter}"
    begin = STARTED.model_copy(update={"priority": priority})
    await world.put(event(begin, run), *(raised(f"{letter}{n}", run) for n in range(count)))


async def follow(steps: Steps, toy: Toy, count: int) -> str:
    """The letters of what ``toy`` begins, one after another, until so many are begun."""
    while len(toy.calls) < count:
        before = len(toy.calls)
        steps.permits.release()
        await until(lambda before=before: len(toy.calls) > before)
    return "".join(name[0] for name in toy.calls)


# --- shares -----------------------------------------------------------------------------------------------------------


@one_slot
async def test_a_single_slot_is_shared_and_nothing_waits_for_a_whole_queue(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where each reaction lasts longer than what finds no slot is kept, and nothing is given back often."""
    monkeypatch.setattr(arrivals, "HOLD_S", 0.01)
    steps, letters = Steps(), "abcd"
    toy = Toy(steps)
    await world.bus(toy)
    for letter in letters:
        await work(world, letter, 12)
    order = await follow(steps, toy, 40)
    shared = order[8:]  # until the last run is known
    for n in range(len(shared) - 4):
        assert set(shared[n : n + 5]) >= set(letters) - {shared[n + 4]}, order
    for _ in range(60):
        steps.permits.release()
    for letter in letters:
        await world.until(12, run=f"run-{letter}")
    info = [await world.log.client.jsm().consumer_info(EVENTS, f"toy-run-{letter}") for letter in letters]
    again = sum(one.delivered.consumer_seq - 12 for one in info if one.delivered)
    assert again <= 2 * len(letters), "what comes again counts as a delivery"


@one_slot
async def test_priorities_are_shares_and_can_be_changed_meanwhile(world: World) -> None:
    steps = Steps()
    toy = Toy(steps)
    bus = await world.bus(toy)
    await work(world, "h", 40, priority=40)
    await work(world, "l", 40)
    await until(lambda: len(bus.run_consumers.runs()) == 2)
    order = await follow(steps, toy, 25)
    counts = Counter(order[5:])
    assert counts["l"] >= 3 and counts["h"] >= 14, order
    await world.put(event(PriorityChanged(priority=100), "run-l"), event(PriorityChanged(priority=1), "run-h"))
    order = (await follow(steps, toy, 45))[33:]
    assert order.count("l") >= 10, order
    for _ in range(80):
        steps.permits.release()
    await world.until(40, run="run-h")
    await world.until(40, run="run-l")


# --- models -----------------------------------------------------------------------------------------------------------


async def crew(world: World, steps: Any, count: int, slots: int = 4) -> tuple[list[Toy], list[Bus]]:
    toys = [Toy(steps, in_flight=slots) for _ in range(count)]
    return toys, [await world.bus(toy, model_of=model_of) for toy in toys]


def left_to_others(bus: Bus) -> set[str]:
    """The runs that it leaves to other processes."""
    return {*bus.run_consumers._arrivals["toy"]._left}


async def test_each_process_takes_tasks_of_the_model_that_it_has_loaded(world: World) -> None:
    """From when they have divided the models, but for what was on its way by then."""
    steps, count = Steps(), 80
    toys, buses = await crew(world, steps, 2)
    await work(world, "a", count)
    await work(world, "b", count)
    await until(lambda: all(len(toy.calls) >= 4 for toy in toys))
    await until(lambda: sorted(sorted(left_to_others(bus)) for bus in buses) == [["run-a"], ["run-b"]])
    begun = [len(toy.calls) for toy in toys]
    for _ in range(60):
        steps.permits.release()
    await until(lambda: sum(len(toy.calls) for toy in toys) >= 68)
    letters = [{name[0] for name in toy.calls[n + 8 :]} for toy, n in zip(toys, begun, strict=True)]
    assert all(len(each) <= 1 for each in letters) and letters[0] != letters[1], [toy.calls for toy in toys]
    for _ in range(2 * count):
        steps.permits.release()
    await world.until(count, run="run-a")
    await world.until(count, run="run-b")


async def test_a_model_that_only_a_killed_process_had_is_loaded_by_another(world: World) -> None:
    steps = Steps()
    toys, buses = await crew(world, steps, 2)
    await work(world, "a", 40)
    await work(world, "b", 40)
    await until(lambda: all(len(toy.calls) >= 4 for toy in toys))
    await world.stop(buses[0], grace_s=0)
    for _ in range(100):
        steps.permits.release()
    await world.until(40, run="run-a")
    await world.until(40, run="run-b")


@one_slot
async def test_what_others_have_the_model_of_and_do_not_take_is_taken(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that has it says so, and stands; the other one has enough to do."""
    monkeypatch.setattr(affinity, "BOUND_S", 600.0)
    stuck, steps, count = Steps(), Steps(), 120
    await world.bus(standing := Toy(stuck), model_of=model_of)
    await work(world, "b", 3)
    await until(lambda: standing.calls)
    await work(world, "a", count)
    await world.bus(free := Toy(steps), model_of=model_of)
    for done in range(3):
        await until(lambda done=done: len(free.calls) > done)
        steps.permits.release()
    assert "b1" not in free.calls
    monkeypatch.setattr(affinity, "BOUND_S", 0.4)
    async with asyncio.timeout(PATIENCE_S):
        while free.calls.count("b1") < 1:
            steps.permits.release()
            await asyncio.sleep(0.05)
    assert len(free.calls) < count
    for _ in range(count):
        steps.permits.release()
        stuck.permits.release()
    await world.until(3, run="run-b")
    await world.until(count, run="run-a")


plans = st.lists(st.sampled_from(["join", "drain", "kill", "a", "b", "c"]), min_size=4, max_size=8)


@soon_again
@examples(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans, slots=st.integers(1, 3))
async def test_whoever_comes_and_goes_each_message_of_each_model_has_one_effect(
    world: World, plan: list[str], slots: int
) -> None:
    number, counts = len(world.begun), Counter[str]()
    for step in (*plan, "join"):
        match step:
            case "join":
                await crew(world, resolve, 1, slots)
            case "drain" | "kill" if world.buses:
                await world.stop(world.buses[0], grace_s=0 if step == "kill" else 5)
            case "a" | "b" | "c":
                run = f"run-{number}-{step}"
                await world.put(*(raised(f"{step}{counts[run] + n}", run) for n in range(6)))
                counts[run] += 6
    for run, count in counts.items():
        effects = await world.until(count, run=run)
        assert len({e.event.alarm for e in effects}) == count  # type: ignore[attr-defined]
    for bus in list(world.buses):
        await world.stop(bus)
