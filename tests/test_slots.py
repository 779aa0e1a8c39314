"""Calls to a model server wait for a slot, and a busy server is asked again."""

import asyncio
from functools import partial

import pytest

from agent0.errors import DependencyError
from agent0.infra.models.calls import slots
from agent0.infra.models.calls.slots import BusyError, Slots


@pytest.mark.parametrize("parallel", [1, 3])
async def test_no_more_calls_than_slots_and_in_order(parallel: int) -> None:
    free, under_way, most, begun = Slots("A server", parallel, 1), 0, 0, list[int]()

    async def call(number: int) -> int:
        nonlocal under_way, most
        begun.append(number)
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return number

    assert await asyncio.gather(*(free.call(partial(call, n)) for n in range(20))) == list(range(20))
    assert (most, begun) == (parallel, list(range(20)))


async def test_a_busy_server_is_asked_again_and_its_slot_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "FIRST_S", 0.001)
    free, asked = Slots("A server", 1, 60), list[str]()

    async def call(name: str) -> str:
        asked.append(name)
        if asked.count(name) < 4:
            raise BusyError("full")
        return name

    assert await asyncio.gather(*(free.call(partial(call, name)) for name in "ab")) == ["a", "b"]
    assert asked == [*"aaaa", *"bbbb"]


@pytest.mark.parametrize("after_s", [0, 3600])
async def test_one_that_stays_busy_counts_as_away(monkeypatch: pytest.MonkeyPatch, after_s: float) -> None:
    monkeypatch.setattr(slots, "FIRST_S", 0.001)
    free = Slots("A server", 1, 0.05)

    async def call() -> None:
        raise BusyError("maximum pending requests exceeded", after_s)

    with pytest.raises(DependencyError, match=r"busy for 0\.05 seconds: maximum pending") as caught:
        await free.call(call)
    assert caught.value.dependency == "A server"
    async with free.slot():
        """The slot was given back."""


async def test_a_call_that_fails_or_is_cancelled_gives_its_slot_back() -> None:
    free, hung = Slots("A server", 1, 1), asyncio.Event()

    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await free.call(fail)
    task = asyncio.create_task(free.call(hung.wait))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    hung.set()
    assert await free.call(hung.wait)


@pytest.mark.parametrize("parallel", [1, 2, 5])
@pytest.mark.parametrize("turns", [2, 3, 6])
async def test_what_was_begun_is_finished_before_more_is_begun(parallel: int, turns: int) -> None:
    """Conversations in more numbers than slots, each with a tool between its turns."""
    free, begun, finished, most = Slots("A server", parallel, 1), set[int](), set[int](), 0

    async def attempt(number: int) -> None:
        nonlocal most
        for turn in range(turns):
            async with free.slot(turn):
                begun.add(number)
                most = max(most, len(begun - finished))
                await asyncio.sleep(0)
            await asyncio.sleep(0)
        finished.add(number)

    await asyncio.gather(*(attempt(number) for number in range(40)))
    assert len(finished) == 40 and most <= 3 * parallel


async def test_one_that_stops_waiting_leaves_its_place_to_the_next() -> None:
    free, order = Slots("A server", 1, 1), list[str]()

    async def call(name: str, turn: int) -> None:
        async with free.slot(turn):
            order.append(name)
            await asyncio.sleep(0)

    async with free.slot():
        waiting = {name: asyncio.create_task(call(name, turn)) for name, turn in (("a", 0), ("b", 2), ("c", 1))}
        await asyncio.sleep(0)
        waiting["b"].cancel()
    await asyncio.gather(*waiting.values(), return_exceptions=True)
    assert order == ["c", "a"]
    async with free.slot():
        """The last slot was given back."""
