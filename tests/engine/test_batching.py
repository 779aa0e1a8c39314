"""Requests become batches: their order, which join a batch that runs, and what a failure ends."""

import asyncio
from typing import Any

from agent0.errors import OperationError, TransientError
from agent0.infra.engine.batching import Batcher


async def test_groups_take_turns_and_keys_stay_apart() -> None:
    seen: list[tuple[Any, list[str]]] = []

    async def run(key: Any, fresh: Any, _: Any) -> dict[int, str]:
        seen.append((key, list(fresh.values())))
        await asyncio.sleep(0)
        return {number: f"{key} {text}" for number, text in fresh.items()}

    batcher: Batcher[str, str] = Batcher(run, max_batch=4)
    large = [batcher.ask(f"l{n}", key="a", group="large", size=n) for n in range(10)]
    small = [batcher.ask(f"s{n}", key="b" if n == 1 else "a", group="small", size=0) for n in range(3)]
    answers = await asyncio.gather(*large, *small)
    assert answers == [f"a l{n}" for n in range(10)] + ["a s0", "b s1", "a s2"]
    assert {"s0", "s2"} <= set(seen[0][1]) and len(seen[0][1]) == 4
    assert all(key == ("b" if "s1" in batch else "a") for key, batch in seen)
    assert [one for key, batch in seen for one in batch if key == "b"] == ["s1"]
    await batcher.close()


async def test_a_failure_reaches_exactly_those_it_concerns() -> None:
    async def run(key: Any, fresh: Any, _: Any) -> dict[int, Any]:
        if key == "broken":
            raise TransientError("no")
        return {number: OperationError("odd") if text == "odd" else text for number, text in fresh.items()}

    batcher: Batcher[str, str] = Batcher(run, max_batch=8)
    asked = [("x", "broken"), ("odd", "fine"), ("y", "fine")]
    answers = await asyncio.gather(*(batcher.ask(a, key=k, group="", size=1) for a, k in asked), return_exceptions=True)
    assert [type(answer) for answer in answers] == [TransientError, OperationError, str]
    gone = asyncio.create_task(batcher.ask("z", key="fine", group="", size=1))
    await asyncio.sleep(0)
    gone.cancel()
    assert await batcher.ask("w", key="fine", group="", size=1) == "w"
    await batcher.close()


class Slow:
    """Answers the one that it has had longest, at each call; keeps who was beside whom."""

    def __init__(self) -> None:
        self.open: dict[int, str] = {}
        self.seen: list[tuple[Any, list[str]]] = []

    async def run(self, key: Any, fresh: Any, earlier: Any) -> dict[int, str]:
        assert sorted(earlier) == sorted(self.open)
        self.open |= fresh
        self.seen.append((key, [*self.open.values()]))
        await asyncio.sleep(0)
        number = min(self.open)
        return {number: self.open.pop(number)}


async def test_who_asks_meanwhile_joins_those_that_are_being_answered() -> None:
    slow = Slow()
    batcher: Batcher[str, str] = Batcher(slow.run, max_batch=3)

    async def conversation(name: str, turns: int, key: str) -> None:
        for turn in range(turns):
            assert await batcher.ask(f"{name}{turn}", key=key, group=name, size=1) == f"{name}{turn}"

    talks = (("a", 6, "x"), ("b", 6, "x"), ("c", 3, "y"), ("d", 3, "x"))
    await asyncio.gather(*(conversation(*talk) for talk in talks))
    assert all(len(texts) <= 3 for _, texts in slow.seen)
    assert all((text[0] == "c") == (key == "y") for key, texts in slow.seen for text in texts)
    assert any({text[0] for text in texts} >= {"a", "b"} and {*texts} & {"a2", "b2"} for _, texts in slow.seen)
    order = [text for _, texts in slow.seen for text in texts]
    assert order.index("c2") < order.index("a5"), "another key waits for its turn, not for the end"
    await batcher.close()


async def test_nothing_is_answered_in_a_pause_and_all_is_after_it() -> None:
    slow = Slow()
    batcher: Batcher[str, str] = Batcher(slow.run, max_batch=8)
    first = [asyncio.create_task(batcher.ask(f"a{n}", key="", group="", size=1)) for n in range(4)]
    await first[0]
    async with batcher.paused():
        assert not slow.open and all(task.done() for task in first)
        late = asyncio.create_task(batcher.ask("late", key="", group="", size=1))
        calls = len(slow.seen)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(slow.seen) == calls and not late.done()
    assert await late == "late"
    await batcher.close()
