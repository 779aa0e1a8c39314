"""A chat that is sent while it is written: by the official client against a vendor's stand-in, cut, and given up."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from agent0.api.openai.streams import ChatEvents, is_live, live
from agent0.api.openai.wire import ChatRequest
from agent0.assembly.routing.strategies import entry_of, rules_of
from agent0.events.runs import RunStarted
from agent0.infra.gateway.strategy_gateway import Plan, StrategyGateway
from agent0.infra.gateway.streaming import streamed
from agent0.infra.log.event_log import Log
from agent0.ports.models import GenerateRequest, Sampling
from agent0.settings import RoutingConfig
from tests.anthropic_server import AnthropicStandIn, serving
from tests.api.served import stored, viewed
from tests.story import renumbered, whole_run
from tests.test_gateway import Vendor, books, link
from tests.test_gateway_streams import CLAUDE, Writing

MESSAGES: Any = [{"role": "user", "content": "6*7?"}]


@pytest.fixture(scope="module")
def server() -> Iterator[AnthropicStandIn]:
    with serving() as there:
        there.limits = {}
        yield there


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, server: AnthropicStandIn) -> Iterator[OpenAI]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
        first, *others = whole_run("r1", iterations=1)
        assert isinstance(first.event, RunStarted)
        student = {"provider": f"anthropic/{CLAUDE}", "base_url": server.url}
        config = {**first.event.config, "student": student}
        told = first.model_copy(update={"event": first.event.model_copy(update={"config": config})})
        home = stored(tmp_path_factory.mktemp("chat"), renumbered([told, *others]))
        with viewed(home) as address, OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as held:
            yield held


def stream_of(client: OpenAI) -> Any:
    return client.chat.completions.create(
        model="r1/base", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )


def test_parts_come_while_the_turn_is_written(client: OpenAI, server: AnthropicStandIn) -> None:
    parts = [*stream_of(client)]
    assert [one.choices[0].delta.content for one in parts if one.choices] == ["", "It i", "s 42.", None]
    assert parts[-2].choices[0].finish_reason == "stop" and parts[-1].usage.completion_tokens == 200


def test_who_stops_reading_closes_the_connection_to_the_vendor(client: OpenAI, server: AnthropicStandIn) -> None:
    server.faults = ["slow"]
    server.gone.clear()
    with stream_of(client) as stream:
        assert [next(stream).choices[0].delta.content for _ in range(2)] == ["", "It i"]
        assert not server.gone.is_set()
    assert server.gone.wait(30)


def test_a_turn_that_breaks_off_ends_with_an_error(client: OpenAI, server: AnthropicStandIn) -> None:
    server.faults, said = ["cut"] * 3, list[str]()
    with pytest.raises(openai.APIError, match="ended before it was whole"):
        for part in stream_of(client):
            said.append(part.choices[0].delta.content)
    assert said == ["", "It i"] and server.faults == ["cut"] * 2  # for what was sent, nobody tried again
    server.faults = ["key"]
    with pytest.raises(openai.APIStatusError, match="refused the key"):
        stream_of(client)


def test_a_server_without_a_log_routes_nothing(client: OpenAI) -> None:
    with pytest.raises(openai.ConflictError, match="only reads"):
        client.chat.completions.create(model="r1/base", messages=MESSAGES, extra_body={"routed": True})


# --- strategies -------------------------------------------------------------------------------------------------------


async def events(
    log: Log, strategy: str, first: Vendor, cloud: Vendor, routed: bool = False, **rules: Any
) -> list[dict[str, Any]]:
    kept, routing = books(log), RoutingConfig(strategy=strategy, **rules)
    plan = Plan("student", entry_of(strategy), rules_of(routing), {})
    gate = StrategyGateway([link(kept, first), link(kept, cloud, name="gpt-4o-mini")], first, plan, kept)
    asked = ChatRequest(model="m", messages=MESSAGES, stream=True, routed=routed)
    request = GenerateRequest(asked.turns(), Sampling(0.0, max_tokens=9), group="r1")
    response = await live(streamed(gate, request), ChatEvents(asked, {}))
    lines = [str(one) async for one in response.body_iterator]
    assert lines.pop() == "data: [DONE]\n\n"
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def said(rows: list[dict[str, Any]]) -> list[str]:
    return [row["choices"][0]["delta"]["content"] for row in rows[1:-1]]


async def test_a_strategy_that_gives_its_first_answer_is_heard(log: Log) -> None:
    rows = await events(log, "ab", Vendor(), Writing("Fo", "Four."), share=1)
    assert said(rows) == ["Fo", "ur.", "\n"] and rows[-1]["served_by"]
    shadowed = Writing("Five")
    rows = await events(log, "shadow", Writing("Fo", "Four."), shadowed)
    assert said(rows) == ["Fo", "ur.", "\n"] and "served_by" not in rows[-1]
    assert shadowed.asked[0].listen is None


async def test_a_model_that_a_budget_chose_is_named(log: Log) -> None:
    """The first of the chain, which costs nothing, answers where what it is unsure of is too dear to be asked anew."""
    ask = {"threshold": 1, "allowance_usd": 0}
    rows = await events(log, "budgeted", Writing("Fo", "Four."), Writing("Fi", "Five."), routed=True, **ask)
    assert said(rows) == ["Four.\n"] and rows[-1]["served_by"] == Vendor().name
    rows = await events(log, "budgeted", Writing("Fo", "Four."), Writing("Fi", "Five."), **ask)
    assert said(rows) == ["Four.\n"] and "served_by" not in rows[-1]  # nobody asked for others


async def test_a_strategy_that_chooses_between_answers_is_heard_at_its_end_alone(log: Log) -> None:
    rows = await events(log, "threshold", Writing("Fo", "Four."), Writing("Fi", "Five."), threshold=1)
    assert said(rows) == ["Five.\n"]


def test_what_depends_on_the_whole_turn_is_written_first() -> None:
    tool = {"type": "function", "function": {"name": "python"}}
    plain: dict[str, Any] = {"model": "m", "messages": MESSAGES, "stream": True}
    assert is_live(ChatRequest.model_validate(plain))
    for more in ({"n": 2}, {"tools": [tool]}, {"logprobs": True}, {"return_token_ids": True}, {"stream": False}):
        assert not is_live(ChatRequest.model_validate(plain | more))
