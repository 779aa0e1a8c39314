"""A benchmark that a run scores goes on where its process ended, and stays with the rows it began with."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.replay.forks import check_rows
from agent0.errors import ConfigError, NotFoundError
from agent0.events.alarms import ReactionFailed
from agent0.events.checkpoints import CheckpointEvaluated, EvaluationItemScored
from agent0.handlers import handlers
from agent0.infra.bus.bus import Bus
from agent0.infra.storage.datasets import BenchmarkFolder
from agent0.ports.models import GenerateRequest, Generation
from agent0.provenance.fork_history import Branches
from agent0.run.lifecycle import evolve
from tests.bus.toys import World
from tests.patience import until
from tests.world import Opened, ports, small, started

ROWS = Path(__file__).parents[3] / "shared" / "benchmarks"
pytestmark = pytest.mark.skipif(not ROWS.is_dir(), reason="no benchmark rows here")
ITEMS, AT_ONCE, SCORED = 8, 3, 4
EVALUATORS = ("advance_run", "evaluate_checkpoint", "evaluate_item")
BENCHMARK = "base-benchmark-gsm8k"


class Gate:
    """A model that begins ``left`` items and then says nothing; notes what it is asked."""

    name = "scripted"

    def __init__(self, inner: Any, left: int) -> None:
        self.inner, self.left, self.silent = inner, left, 0
        self.asked: list[str] = []

    async def generate(self, request: GenerateRequest) -> Generation:
        if request.turns[-1].role == "user":
            self.asked.append(request.turns[-1].content)
            self.left -= 1
            if self.left < 0:
                self.silent += 1
                await asyncio.Event().wait()
        return await self.inner.generate(request)

    async def close(self) -> None:
        await self.inner.close()


async def process(world: World, stores: dict[str, Any], left: int, folder: Path) -> tuple[Bus, Gate]:
    gate = Gate(stores["models"].open(""), left)
    files = {"models": Opened(gate), "history": Branches(world.log), "benchmark_files": BenchmarkFolder(folder)}
    chosen = [handlers()[name] for name in EVALUATORS]
    bus = Bus(world.log, chosen, stores | files, evolve, world.settings, "rev", fatal=world.deaths.append)
    world.buses.append(bus)
    await bus.start()
    return bus, gate


async def stopped_in_the_middle(world: World, stores: dict[str, Any]) -> set[str]:
    """A process that ended after some items of the benchmark; returns their questions."""
    plan = {"validation": 1, "test": 0, "benchmarks": ["gsm8k"], "benchmark_items": ITEMS, "at_once": AT_ONCE}
    await world.provision(*[handlers()[name] for name in EVALUATORS])  # type: ignore[arg-type]
    await world.put(started(small(evaluation=plan)))
    first, gate = await process(world, stores, SCORED + 1, ROWS)
    await until(lambda: gate.silent > 0, "items in flight")
    await world.until_any(SCORED + 1, "EvaluationItemScored")
    await world.stop(first, grace_s=0)
    return await questions(world)


async def questions(world: World) -> set[str]:
    held = [one.event for one in await world.stored("EvaluationItemScored")]
    return {e.question for e in held if isinstance(e, EvaluationItemScored) and e.evaluation == BENCHMARK}


async def test_what_is_scored_is_not_asked_again(world: World) -> None:
    stores = ports()
    done = await stopped_in_the_middle(world, stores)
    assert 0 < len(done) < ITEMS
    _, after = await process(world, stores, 10 * ITEMS, ROWS)
    await world.until_any(2, "CheckpointEvaluated")
    again = [question for question in done if any(question in asked for asked in after.asked)]
    assert not again, "what is done is not begun again"
    (score,) = [
        one.event
        for one in await world.stored("CheckpointEvaluated")
        if isinstance(one.event, CheckpointEvaluated) and one.event.benchmark
    ]
    assert (score.n, len(score.outcomes), score.benchmark) == (ITEMS, ITEMS, "gsm8k")
    assert len(await questions(world)) == ITEMS
    assert not await world.stored("ReactionFailed")


async def test_other_rows_are_refused_by_name_when_it_goes_on(world: World, tmp_path: Path) -> None:
    stores = ports()
    await stopped_in_the_middle(world, stores)
    with pytest.raises(NotFoundError, match="No rows of gsm8k"):
        await check_rows(world.log, "r1", BenchmarkFolder(tmp_path))
    shutil.copy(ROWS / "gsm8k_test.jsonl", tmp_path)
    await check_rows(world.log, "r1", BenchmarkFolder(tmp_path))
    with (tmp_path / "gsm8k_test.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(ConfigError, match="rows of gsm8k have changed"):
        await check_rows(world.log, "r1", BenchmarkFolder(tmp_path))
    await process(world, stores, 10 * ITEMS, tmp_path)
    await world.until_any(1, "ReactionFailed")
    failed = (await world.stored("ReactionFailed"))[0].event
    assert isinstance(failed, ReactionFailed) and "rows of gsm8k have changed" in failed.message
