"""A process takes as much as it has slots for, so a latecomer has its share."""

import asyncio
from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent0.events.base import Event, Recorded
from agent0.events.runs import RunPaused, RunResumed
from tests.bus.toys import STARTED, State, Toy, World, event, raised, resolve, soon_again
from tests.patience import PATIENCE_S


class Gate:
    """Reactions that stand until they are let go, so that what each process has begun can be counted."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, cause: Recorded, run: State) -> list[Event]:
        await self.open.wait()
        return await resolve(cause, run)


async def begun(toys: list[Toy], *numbers: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while [len(toy.calls) for toy in toys] != list(numbers):
            await asyncio.sleep(0.02)


# --- shares -----------------------------------------------------------------------------------------------------------


async def test_a_process_takes_no_more_than_it_has_slots_and_a_latecomer_has_its_share(world: World) -> None:
    gate = Gate()
    toys = [Toy(gate, in_flight=8) for _ in range(3)]
    for toy in toys[:2]:
        await world.bus(toy)
    await world.put(*(raised(f"a{n}") for n in range(40)))
    await begun(toys, 8, 8, 0)
    await world.bus(toys[2])
    await begun(toys, 8, 8, 8)
    gate.open.set()
    await world.until(40)
    await world.quiet()
    assert set(Counter(name for toy in toys for name in toy.calls).values()) == {1}


async def test_what_a_resumed_run_left_over_is_spread_like_all_else(world: World) -> None:
    gate = Gate()
    toys = [Toy(gate, in_flight=4) for _ in range(2)]
    await world.put(event(RunPaused()), *(raised(f"a{n}") for n in range(12)))
    for toy in toys:
        await world.bus(toy)
    await world.quiet()
    assert [toy.calls for toy in toys] == [[], []]
    await world.put(event(RunResumed()))
    await begun(toys, 4, 4)
    gate.open.set()
    await world.until(12)


async def test_two_runs_share_the_slots_of_a_process(world: World) -> None:
    """Slots are freed one by one, each when what took the one before has begun."""
    permits, slots = asyncio.Semaphore(0), 6

    async def permitted(cause: Recorded, run: State) -> list[Event]:
        await permits.acquire()
        return await resolve(cause, run)

    toy = Toy(permitted, in_flight=slots)
    bus = await world.bus(toy)
    await world.put(event(STARTED, "r2"), *(raised(f"a{n}") for n in range(60)))
    await begun([toy], slots)
    async with asyncio.timeout(PATIENCE_S):
        while "r2" not in bus.run_consumers.runs():
            await asyncio.sleep(0.02)
    await world.put(*(raised(f"b{n}", "r2") for n in range(10)))
    while not any(name.startswith("b") for name in toy.calls) and len(toy.calls) < 60:
        permits.release()
        await begun([toy], len(toy.calls) + 1)
    assert toy.calls[-1].startswith("b"), "the small run waited for the large one"
    for _ in range(70):
        permits.release()
    await world.until(10, run="r2")
    await world.until(60)


async def test_a_process_that_drains_hands_back_what_it_has_not_begun(world: World) -> None:
    gate = Gate()
    draining, other = Toy(gate, in_flight=4), Toy(resolve, in_flight=4)
    bus = await world.bus(draining)
    await world.put(*(raised(f"a{n}") for n in range(20)))
    await begun([draining], 4)
    stopping = asyncio.create_task(world.stop(bus, grace_s=PATIENCE_S))
    await world.bus(other)
    await world.until(16)
    gate.open.set()
    await stopping
    await world.until(20)
    assert Counter(draining.calls + other.calls) == Counter(f"a{n}" for n in range(20))


steps = st.lists(st.sampled_from(["join", "drain", "kill", "pause", "resume", "work"]), min_size=3, max_size=7)


@soon_again
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=steps, places=st.integers(0, 5))
async def test_whatever_processes_and_runs_do_each_message_has_one_effect(
    world: World, plan: list[str], places: int
) -> None:
    """Joining, draining, dying, pausing and resuming in any order loses nothing and does nothing twice."""
    run, count = f"run-{len(world.begun)}", 0
    for step in (*plan, "resume", "join"):
        match step:
            case "join":
                await world.bus(Toy(resolve, in_flight=1 + places))
            case "drain" if world.buses:
                await world.stop(world.buses[0])
            case "kill" if world.buses:
                await world.stop(world.buses[0], grace_s=0)
            case "pause" | "resume":
                await world.put(event(RunPaused() if step == "pause" else RunResumed(), run))
            case "work":
                await world.put(*(raised(f"a{count + n}", run) for n in range(9)))
                count += 9
    effects = await world.until(count, run=run)
    assert Counter(e.event.alarm for e in effects) == Counter(f"a{n}" for n in range(count))  # type: ignore[attr-defined]
    for bus in list(world.buses):
        await world.stop(bus)
