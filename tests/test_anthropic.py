"""Anthropic's models over the wire: what is asked, what is read, and what each failure becomes. No key, and no piece of
a request, is in what is said."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from agent0.chat_format import format_call
from agent0.errors import (
    Agent0Error,
    AuthError,
    NotSentError,
    RefusedError,
    ServerBusyError,
    TransientError,
    UsageError,
)
from agent0.events.values import TokenCounts, Turn
from agent0.infra.gateway.prices import read_usage
from agent0.infra.models.anthropic.provider import Anthropic
from agent0.ports.models import GenerateRequest, Sampling, ToolSpec
from agent0.settings import ActorConfig, TeacherConfig
from tests.anthropic_server import AnthropicStandIn, serving

KEY = "sk-ant-test"
SECRET = "a question that nobody else may read"
ASKED = GenerateRequest(
    (Turn(role="system", content="Be brief."), Turn(role="user", content=SECRET)), Sampling(max_tokens=50)
)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


@pytest.fixture
def server() -> Iterator[AnthropicStandIn]:
    with serving() as there:
        yield there


def model(url: str, **changes: Any) -> Anthropic:
    return Anthropic(ActorConfig(provider="anthropic/claude-sonnet-4-5", base_url=url, **changes))


async def ask(url: str, request: GenerateRequest = ASKED, **changes: Any) -> Any:
    there = model(url, **changes)
    try:
        return await there.generate(request)
    finally:
        await there.close()


async def test_a_turn_is_asked_for_and_read(server: AnthropicStandIn) -> None:
    written = await ask(server.url)
    assert (written.text, written.finish, written.capture) == ("It is 42.", "stop", "text")
    assert written.untrainable and written.model == "anthropic/claude-sonnet-4-5"
    assert (written.usage.prompt_tokens, written.usage.completion_tokens) == (1000, 200)
    assert written.usage.first_s is not None and written.usage.first_s <= written.usage.wall_s
    assert written.served.model == server.model
    assert written.served.limits["anthropic-ratelimit-requests-limit"] == "50" and "request-id" not in str(written)
    tokens = read_usage("anthropic", {"usage": written.counted}, "default")
    assert tokens == TokenCounts(read=1000, cache_read=800, written=200)
    [sent] = server.asked
    assert sent["system"] == "Be brief." and sent["messages"] == [{"role": "user", "content": SECRET}]
    assert (sent["model"], sent["max_tokens"], sent["stream"]) == ("claude-sonnet-4-5", 50, True)


async def test_tools_are_described_in_the_text_and_calls_put_back_into_it(server: AnthropicStandIn) -> None:
    tool = ToolSpec("python", "Runs it.", {"type": "object"})
    server.blocks, server.stop = ["I compute.", ("python", '{"code": "6*7"}')], "tool_use"
    turns = (
        *ASKED.turns,
        Turn(role="assistant", content=format_call("python", {"code": "1"})),
        Turn(role="tool", name="python", content="1"),
    )
    written = await ask(server.url, GenerateRequest(turns, tools=(tool,), schema={"type": "object"}))
    assert written.text == "I compute.\n" + format_call("python", {"code": "6*7"})
    [sent] = server.asked
    assert "Runs it." in sent["system"] and "tools" not in sent
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    assert sent["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}}


@pytest.mark.parametrize(
    ("sampling", "has", "lacks"),
    [(Sampling(0.5), "temperature", "top_p"), (Sampling(1.0, top_p=0.9), "top_p", "temperature")],
)
async def test_temperature_and_top_p_are_never_sent_together(
    server: AnthropicStandIn, sampling: Sampling, has: str, lacks: str
) -> None:
    await ask(server.url, GenerateRequest(ASKED.turns, sampling))
    assert has in server.asked[0] and lacks not in server.asked[0]


async def test_a_turn_that_met_the_limit_says_so(server: AnthropicStandIn) -> None:
    server.stop = "max_tokens"
    assert (await ask(server.url)).finish == "length"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("key", AuthError),
        ("model", RefusedError),
        ("long", RefusedError),
        ("unpaid", RefusedError),
        ("down", TransientError),
        ("cut", TransientError),
        ("error", TransientError),
    ],
)
async def test_each_failure_has_its_error_and_is_asked_once(
    server: AnthropicStandIn, fault: str, error: type[Agent0Error]
) -> None:
    server.faults = [fault]
    with pytest.raises(error) as said:
        await ask(server.url)
    assert len(server.asked) == 1
    assert KEY not in str(said.value) and SECRET not in str(said.value)


@pytest.mark.parametrize("fault", ["busy", "overloaded"])
async def test_a_busy_server_says_when_to_come_back_and_is_not_asked_before(
    server: AnthropicStandIn, fault: str
) -> None:
    server.faults, server.after = [fault], "17"
    with pytest.raises(ServerBusyError) as said:
        await ask(server.url)
    assert said.value.after_s == 17 and len(server.asked) == 1


async def test_a_busy_server_may_name_the_moment(server: AnthropicStandIn) -> None:
    server.faults, server.after = ["busy"], format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    with pytest.raises(ServerBusyError) as said:
        await ask(server.url)
    assert 80 < said.value.after_s <= 90


async def test_an_answer_without_a_count_is_kept_and_cannot_be_priced(server: AnthropicStandIn) -> None:
    server.faults = ["no usage"]
    written = await ask(server.url)
    assert written.text == "It is 42." and written.counted == {}
    with pytest.raises(UsageError):
        read_usage("anthropic", {"usage": written.counted}, "default")


async def test_a_server_that_hangs_is_left(server: AnthropicStandIn) -> None:
    server.faults = ["hang"]
    with pytest.raises(TransientError, match="too long"):
        await ask(server.url, timeout_s=0.05)


async def test_a_cancelled_call_closes_its_connection(server: AnthropicStandIn) -> None:
    server.faults = ["slow"]
    call = asyncio.create_task(ask(server.url))
    assert await asyncio.to_thread(server.writing.wait, 30)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.to_thread(server.gone.wait, 30)


async def test_what_it_cannot_do_is_not_sent(server: AnthropicStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RefusedError):
        await ask(server.url, GenerateRequest(ASKED.turns, prefill="So"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    with pytest.raises(AuthError, match="ANTHROPIC_API_KEY"):
        model(server.url)
    assert server.asked == []


async def test_nothing_listens_there() -> None:
    with pytest.raises(NotSentError):
        await ask("http://127.0.0.1:9")


def test_a_provider_may_name_its_model() -> None:
    actor = TeacherConfig.model_validate({"provider": "anthropic/claude-x", "fallback": ["openai/gpt-4o"]})
    assert (actor.provider, actor.model, actor.fallback) == ("anthropic", "claude-x", ("openai/gpt-4o",))
    assert TeacherConfig.model_validate({"provider": "openai/a/b"}).model == "a/b"
    with pytest.raises(ValueError, match="names the model claude-x"):
        TeacherConfig.model_validate({"provider": "anthropic/claude-x", "model": "other"})
