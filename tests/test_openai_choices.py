"""Turns of one prompt drawn in one call: only where the server's rule for seeds is proven, and with the seed said."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest
import pytest_asyncio

from agent0.errors import TransientError
from agent0.events.tasks import AttemptRequested, TaskAttempted
from agent0.events.values import Task
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.rollout.attempt import generations
from agent0.rollout.attempt_events import to_events
from agent0.rollout.prompts import prompt
from agent0.rollout.student import Conditions, begin, conclude, step
from tests.conformance_model import ask, essence
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.openai_server import OpenAIStandIn, actor, serving

TASK = Task(question="What is 12+30?", domain="math", family="arithmetic", level=1, canonical="arithmetic 12+30")


@pytest.fixture
def server() -> Iterator[OpenAIStandIn]:
    with serving() as there:
        yield there


@pytest_asyncio.fixture
async def model(server: OpenAIStandIn) -> AsyncIterator[OpenAIServer]:
    held = OpenAIServer(actor(server.url))
    await held.generate(replace(ask(), joint=4))
    server.asked.clear()
    yield held
    await held.close()


async def test_turns_of_one_prompt_are_one_call_and_each_says_its_seed(
    model: OpenAIServer, server: OpenAIStandIn
) -> None:
    seeds = [7, 2**40 + 3, 90, 4000, 11, 12]
    turns = await asyncio.gather(*(model.generate(replace(ask(seed=seed), joint=4)) for seed in seeds))
    assert sorted(body.get("n", 1) for _, body in server.asked) == [2, 4]
    assert [turns[n].seed for n in (0, 2)] == [7, 8]  # of the first four, in the order of their seeds
    for turn in turns:
        assert turn.seed is not None
        assert essence(await model.generate(ask(seed=turn.seed))) == essence(turn)
        assert turn.usage.completion_tokens == len(turn.token_ids) and turn.capture == "tokens"


async def test_nothing_else_is_gathered(model: OpenAIServer, server: OpenAIStandIn) -> None:
    joint = [replace(ask(), joint=4), replace(ask("What is 1+1?"), joint=4), replace(ask(top_p=0.5), joint=4)]
    turns = await asyncio.gather(*map(model.generate, [*joint, ask(seed=1), ask(seed=2)]))
    assert len(server.asked) == 5 and not any("n" in body for _, body in server.asked)
    assert {turn.seed for turn in turns} == {None}


@pytest.mark.parametrize("apart", [0, 2])
async def test_a_server_with_another_rule_is_asked_for_one_at_a_time(apart: int, server: OpenAIStandIn) -> None:
    server.apart = apart
    model = OpenAIServer(actor(server.url))
    turns = await asyncio.gather(*(model.generate(replace(ask(seed=seed), joint=4)) for seed in range(4)))
    assert {turn.seed for turn in turns} == {None}
    for seed, turn in enumerate(turns):
        assert essence(await model.generate(ask(seed=seed))) == essence(turn)
    await model.close()


async def test_everyone_who_waits_hears_of_a_failure(model: OpenAIServer, server: OpenAIStandIn) -> None:
    server.faults = ["down"]
    asked = (model.generate(replace(ask(seed=seed), joint=4)) for seed in range(3))
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(one) for one in found] == [TransientError] * 3


async def test_one_that_leaves_takes_no_other_with_it(model: OpenAIServer) -> None:
    calls = [asyncio.create_task(model.generate(replace(ask(seed=seed), joint=4))) for seed in range(3)]
    await asyncio.sleep(0)
    calls[1].cancel()
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(one).__name__ for one in found] == ["Generation", "CancelledError", "Generation"]


async def test_an_attempt_records_the_seeds_of_its_turns(model: OpenAIServer) -> None:
    config, words = actor("http://host", choices=4), prompt("compact", "math", "student")
    given = [
        Conditions(model, config, TrustingSandbox(), MemoryArtifacts(), seed, joint=True, group="run")
        for seed in range(4)
    ]
    first = await asyncio.gather(*(step(begin(TASK, words, config), one) for one in given))
    assert all(generations(now)[0].seed is not None for now in first)
    for now, one in zip(first, given, strict=True):
        while now.end is None:
            now = await step(now, one)
        found = conclude(now)
        assert found.seeds[0] == now.written[0].seed and len(found.seeds) == found.turns
        asked = AttemptRequested(
            task="t", attempt="a", iteration=1, number=0, proposal=TASK, seed=one.seed, student="s", state_sha=""
        )
        told = (await to_events(asked, now, one.artifacts))[-1]
        assert isinstance(told, TaskAttempted) and told.seeds == found.seeds
    alone = begin(TASK, words, config)
    assert (await step(alone, replace(given[0], joint=False))).written[0].seed is None
