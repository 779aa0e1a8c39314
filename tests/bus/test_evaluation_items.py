"""An evaluation goes on where its process ended: what is scored stays scored, and it ends as it would have anyway."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from agent0.events.base import Event, Recorded
from agent0.events.checkpoints import CheckpointEvaluated, EvaluationItemScored
from agent0.handlers import handlers
from agent0.infra.bus.bus import Bus
from agent0.ports.models import GenerateRequest, Generation
from agent0.provenance.fork_history import Branches
from agent0.run.lifecycle import evolve
from agent0.settings import RunConfig
from tests.bus.toys import World
from tests.patience import until
from tests.play import play
from tests.world import Opened, ports, small, started

ITEMS, AT_ONCE = 10, 3
EVALUATORS = ("advance_run", "evaluate_checkpoint", "evaluate_item")
CLOCKS = {"latency_p50_s", "latency_p95_s", "wall_s", "items"}


def config(**evaluation: Any) -> RunConfig:
    """Of an evaluation whose items are attempted three at a time, some of them until the check accepts an answer."""
    plan = {"validation": ITEMS, "test": 0, "checked": 2, "at_once": AT_ONCE, **evaluation}
    families = ["countdown", "placement", "linear", "boolean"]
    return small(curriculum={"embedder": "ngram", "families": families}, evaluation=plan)


class Gate:
    """A model that begins ``left`` items and then says nothing; notes every item it is asked for, each time."""

    name = "scripted"

    def __init__(self, inner: Any, left: int) -> None:
        self.inner, self.left = inner, left
        self.begun: Counter[str] = Counter()
        self.silent = 0

    async def generate(self, request: GenerateRequest) -> Generation:
        first = request.sampling.temperature == 0 and request.turns[-1].role == "user"
        if first:
            self.begun[request.turns[-1].content.splitlines()[-1]] += 1
            self.left -= 1
            if self.left < 0:
                self.silent += 1
                await asyncio.Event().wait()
        return await self.inner.generate(request)

    async def close(self) -> None:
        await self.inner.close()


class Silent:
    """A history that never answers."""

    async def read(self, *_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()
        yield


async def process(world: World, stores: dict[str, Any], left: int, history: Any) -> tuple[Bus, Gate]:
    """A process that evaluates."""
    chosen = [handlers()[name] for name in EVALUATORS]
    gate = Gate(stores["models"].open(""), left)
    bus = Bus(
        world.log,
        chosen,
        stores | {"models": Opened(gate), "history": history},
        evolve,
        world.settings,
        "rev",
        fatal=world.deaths.append,
    )
    world.buses.append(bus)
    await bus.start()
    return bus, gate


async def provision(world: World) -> None:
    await world.provision(*[handlers()[name] for name in EVALUATORS])  # type: ignore[arg-type]


def plain(event: CheckpointEvaluated, stores: dict[str, Any]) -> tuple[Any, ...]:
    """The score and its items, without the seconds."""
    assert event.items
    rows = [json.loads(line) for line in stores["artifacts"].get(event.items).decode().split("\n")]
    return event.model_dump(exclude=CLOCKS), [{**row, "seconds": 0} for row in rows]


async def undisturbed(plan: RunConfig) -> tuple[Any, ...]:
    stores = ports()
    told = await play(started(plan), stores)
    return plain(next(r.event for r in told if isinstance(r.event, CheckpointEvaluated)), stores)


async def score_of(world: World) -> CheckpointEvaluated:
    await world.until_any(1, "CheckpointEvaluated")
    (one,) = await world.stored("CheckpointEvaluated")
    assert isinstance(one.event, CheckpointEvaluated)
    return one.event


def numbers(scored: Sequence[Recorded]) -> list[int]:
    return [one.event.number for one in scored if isinstance(one.event, EvaluationItemScored)]


@pytest.mark.parametrize("scored", [0, 1, 7, ITEMS])
async def test_what_is_scored_is_not_attempted_again(world: World, scored: int) -> None:
    """Ended before, between and after the items: the last has been scored, and the checkpoint has not."""
    plan, stores = config(), ports()
    await provision(world)
    await world.put(started(plan))
    first, gate = await process(world, stores, scored, Silent())
    await world.until_any(scored, "EvaluationItemScored")
    in_flight = min(AT_ONCE, ITEMS - scored)
    await until(lambda: gate.silent == in_flight, "items in flight")
    await world.stop(first, grace_s=0)
    done = await world.stored("EvaluationItemScored")
    assert len(done) == scored and not await world.stored("CheckpointEvaluated")
    _, after = await process(world, stores, ITEMS, Branches(world.log))
    evaluated = await score_of(world)
    assert not {one.event.question for one in done} & set(after.begun), "what is done is not begun again"  # type: ignore[attr-defined]
    assert after.begun.total() == ITEMS - scored == len(after.begun)
    assert gate.begun.total() <= scored + AT_ONCE
    assert sorted(numbers(await world.stored("EvaluationItemScored"))) == [*range(ITEMS)]
    assert plain(evaluated, stores) == await undisturbed(plan)
    assert not await world.stored("ReactionFailed")


async def test_an_evaluation_that_an_earlier_version_began_is_finished(world: World) -> None:
    """Its first evaluation has a score and no items; it was stopped in the second."""
    plan, stores = config(test=4, forced_tool=False), ports()
    told = [_earlier(r) for r in await play(started(plan), ports())]
    requests = [r for r in told if r.type == "EvaluationRequested"][:2]
    score = next(r for r in told if _is_score(r.event, "base-validation"))
    score = score.model_copy(update={"cause": requests[0].id})
    await provision(world)
    await world.put(told[0], *requests, score)
    await process(world, stores, ITEMS, Branches(world.log))
    await world.until_any(2, "CheckpointEvaluated")
    await world.quiet()
    scores = [one.event for one in await world.stored("CheckpointEvaluated")]
    assert [score.evaluation for score in scores] == ["base-validation", "base-test"]  # type: ignore[attr-defined]
    assert {one.task for one in await world.stored("EvaluationItemScored")} == {"base-test"}
    assert await world.stored("TaskRequested"), "the run goes on"


def _is_score(event: Event, evaluation: str) -> bool:
    return isinstance(event, CheckpointEvaluated) and event.evaluation == evaluation


def _earlier(recorded: Recorded) -> Recorded:
    """As versions wrote it for which an evaluation was one reaction."""
    handler = "evaluate_checkpoint" if recorded.type == "CheckpointEvaluated" else recorded.handler
    return recorded.model_copy(update={"task": "-", "attempt": "-", "handler": handler, "seq": 0})


async def test_no_more_items_are_under_way_than_may_be(world: World) -> None:
    stores = ports()
    await provision(world)
    await world.put(started(config()))
    bus, gate = await process(world, stores, 0, Branches(world.log))
    await until(lambda: gate.silent == AT_ONCE, "items in flight")
    await world.until_any(AT_ONCE, "EvaluationItemRequested")
    assert len(await world.stored("EvaluationItemRequested")) == AT_ONCE < ITEMS
    await world.stop(bus, grace_s=0)  # none of them will be answered
