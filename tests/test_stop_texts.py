"""Texts at which a server is to stop: sent as its wire has them, and done without where it refuses them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agent0.errors import RefusedError
from agent0.events.values import Task
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.rollout.student import Conditions, solve, student_prompt
from agent0.rollout.tool_prompts import stops
from agent0.settings import StudentConfig
from tests.conformance_model import ask
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.openai_server import OpenAIStandIn, actor, serving

STOPS = stops("fence")
TASK = Task(question="What is 12+30?", domain="math", family="arithmetic", level=1, canonical="arithmetic 12+30")


def until() -> Any:
    request = ask()
    return replace(request, sampling=replace(request.sampling, stop=STOPS))


def stops_sent(server: OpenAIStandIn) -> list[Any]:
    """The stop texts of each request since ``server.asked`` was emptied."""
    return [body.get("stop") or body.get("sampling_params", {}).get("stop") for _, body in server.asked]


@pytest.fixture
def strict() -> Iterator[OpenAIStandIn]:
    """A server that refuses every field that it does not know, ``stop`` among them."""
    with serving(level="text") as server:
        yield server


@pytest.mark.parametrize("level", ["tokens", "sglang", "logprobs"])
async def test_they_are_sent_in_every_way_to_ask(level: str) -> None:
    with serving(level=level) as server:
        model = OpenAIServer(actor(server.url, **({"tokenizer": ""} if level == "logprobs" else {})))
        await model.profile()
        server.asked.clear()
        await model.generate(until())
        await model.generate(ask())
        await model.close()
        assert stops_sent(server) == [list(STOPS), None]


async def test_a_server_that_refuses_them_is_asked_without_them_from_then_on(strict: OpenAIStandIn) -> None:
    model = OpenAIServer(actor(strict.url, tokenizer=""))
    expected = await model.generate(ask())
    strict.asked.clear()
    written = [await model.generate(until()) for _ in range(3)]
    await model.close()
    assert {one.text for one in written} == {expected.text}
    assert stops_sent(strict) == [list(STOPS), None, None, None]


@pytest.mark.parametrize(("fault", "asked"), [("context", 2), ("gone", 2), ("down", 1)])
async def test_another_failure_is_told_and_says_nothing_of_stop_texts(fault: str, asked: int) -> None:
    with serving() as server:
        model = OpenAIServer(actor(server.url))
        await model.profile()
        server.asked.clear()
        server.faults = [fault] * asked
        with pytest.raises(Exception, match=r"refused a request|failed with status"):
            await model.generate(until())
        assert len(server.asked) == asked and not server.faults
        await model.generate(until())
        await model.close()
        assert stops_sent(server)[-1] == list(STOPS)


async def test_what_is_refused_without_them_too_is_refused(strict: OpenAIStandIn) -> None:
    model = OpenAIServer(actor(strict.url, tokenizer=""))
    await model.profile()
    strict.asked.clear()
    strict.single = True
    with pytest.raises(RefusedError, match="status 400"):
        await model.generate(until())
    await model.close()
    assert stops_sent(strict) == [list(STOPS), None]


def reply(text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"model": "student", "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 9}}


async def test_an_attempt_in_blocks_of_code_goes_on_at_such_a_server(strict: OpenAIStandIn) -> None:
    config = StudentConfig(provider="openai", tool_form="fence", tools=("python",))
    model = OpenAIServer(actor(strict.url, tokenizer=""))
    await model.profile()
    strict.asked.clear()
    refused = {"error": {"message": "Unrecognized request argument supplied: stop"}}
    strict.replies = [refused, reply("```python\nprint(12 + 30)\n```"), reply("\\boxed{42}")]
    conditions = Conditions(model, config, TrustingSandbox(), MemoryArtifacts(), 0)
    solved = await solve(TASK, student_prompt(config, "math"), conditions)
    await model.close()
    assert (solved.answer, solved.tool_ok, stops_sent(strict)) == ("42", 1, [list(STOPS), None, None])
