"""Turns that are passed on while they are written: never two models' texts in one, charged whatever happens."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent0.errors import DependencyError, StreamBrokenError, TransientError, UsageError
from agent0.events.models import ModelCalled
from agent0.infra.gateway.billed import Billed, Remote
from agent0.infra.gateway.gateway import Gateway, Guards, LocalLink, RemoteLink
from agent0.infra.gateway.prices import read_usage
from agent0.infra.gateway.rates import RateLimits
from agent0.infra.gateway.retries import Retries
from agent0.infra.gateway.streaming import streamed
from agent0.infra.log.event_log import Log
from agent0.infra.models.anthropic.provider import Anthropic
from agent0.infra.models.openai.dialects import Way
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.infra.models.openai.replies import Reading
from agent0.ports.models import GenerateRequest, Generation
from agent0.routing.breaker import Breaker
from agent0.settings import ActorConfig
from tests.anthropic_server import AnthropicStandIn, serving
from tests.openai_server import actor
from tests.openai_server import serving as serving_openai
from tests.terminal import agent0 as call
from tests.test_gateway import ASKED, Vendor, at_once, books, called, spent

CLAUDE = "claude-sonnet-4-5"
WHOLE = "It is 42."


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")


@pytest.fixture
def server() -> Iterator[AnthropicStandIn]:
    with serving() as there:
        there.limits = {}
        yield there


class Writing(Vendor):
    """Says each of its texts so far, then fails or gives the last."""

    streams = True

    def __init__(self, *texts: str, error: Exception | None = None) -> None:
        super().__init__()
        self.texts, self.broken = texts, error

    async def generate(self, request: GenerateRequest) -> Generation:
        self.asked.append(request)
        for text in self.texts:
            await asyncio.sleep(0)
            if request.listen:
                request.listen(text)
        if self.broken:
            raise self.broken
        return replace(await super().generate(request), text=self.texts[-1] + "\n")


def gate(log: Log, *models: Any, hold: int = 0, tries: int = 0) -> Gateway:
    """Every model is a remote one that costs money."""
    kept, links = books(log), []
    for model in models:
        usage = ("anthropic", "default") if isinstance(model, Anthropic) else ("openai", "chat")
        name = CLAUDE if isinstance(model, Anthropic) else "gpt-4o"
        remote = Remote(usage[0], name, "judge", "someone", {}, usage=usage)
        guards = Guards(RateLimits(at_once), Breaker(5, 30), Retries(tries, 60, at_once))
        links.append(RemoteLink(Billed(model, remote, kept), kept, guards))
    return Gateway(links, models[0], hold)


def claude(server: AnthropicStandIn, timeout_s: float = 30) -> Anthropic:
    return Anthropic(ActorConfig(provider=f"anthropic/{CLAUDE}", base_url=server.url, timeout_s=timeout_s))


async def heard(pieces: AsyncGenerator[str | Generation], into: list[str]) -> Generation:
    async with aclosing(pieces):
        async for piece in pieces:
            if not isinstance(piece, str):
                return piece
            into.append(piece)
    raise AssertionError("no turn came")


BROKEN = TransientError("it broke off")


async def test_a_turn_is_heard_while_it_is_written_and_is_what_was_heard(log: Log, server: AnthropicStandIn) -> None:
    model, pieces = claude(server), list[str]()
    written = await heard(streamed(gate(log, model), ASKED), pieces)
    await model.close()
    assert pieces == ["It i", "s 42."] and written.text == WHOLE == "".join(pieces)


async def test_openai_streams_are_heard_too(log: Log) -> None:
    with serving_openai(level="logprobs") as server:
        model, pieces = OpenAIServer(actor(server.url, tokenizer="")), list[str]()
        written = await heard(streamed(gate(log, model), replace(ASKED, group="")), pieces)
        await model.close()
    assert len(pieces) > 1 and "".join(pieces) == written.text


@pytest.mark.parametrize("text", ["  leading", "trailing \n", "\n", ""])
async def test_white_space_is_kept(log: Log, text: str) -> None:
    pieces = list[str]()
    written = await heard(streamed(gate(log, Writing(text)), ASKED), pieces)
    assert "".join(pieces) == written.text == text + "\n"


@pytest.mark.parametrize("fault", ["cut", "error"])
async def test_before_the_rule_commits_a_stand_in_takes_over_alone(
    log: Log, server: AnthropicStandIn, fault: str
) -> None:
    server.faults, server.blocks = [fault], ["Half of a turn, then nothing."]
    model, pieces = claude(server), list[str]()
    written = await heard(streamed(gate(log, model, Writing("Four."), hold=50), ASKED), pieces)
    await model.close()
    assert "".join(pieces) == written.text == "Four.\n" and "another model wrote it" in written.untrainable
    assert [event.error for event in await called(log)] == ["TransientError", ""]


@pytest.mark.parametrize("tries", [0, 3])
async def test_after_it_nobody_goes_on(log: Log, server: AnthropicStandIn, tries: int) -> None:
    """Neither a stand-in nor another try of the same model."""
    server.faults = ["cut"]
    model, other, pieces = claude(server), Writing("Four."), list[str]()
    with pytest.raises(StreamBrokenError, match="4 characters were passed on"):
        await heard(streamed(gate(log, model, other, tries=tries), ASKED), pieces)
    await model.close()
    assert pieces == ["It i"] and other.asked == [] and len(server.asked) == 1
    [event] = await called(log)
    assert event.error == "TransientError" and event.cost == await spent(log) > 0


async def test_another_try_begins_anew_where_nothing_was_passed_on(log: Log) -> None:
    class Once(Writing):
        async def generate(self, request: GenerateRequest) -> Generation:
            self.texts, self.broken = (("Other wor",), BROKEN) if not self.asked else (("Four.",), None)
            return await super().generate(request)

    pieces = list[str]()
    await heard(streamed(gate(log, Once(), hold=3, tries=1), ASKED), pieces)
    assert "".join(pieces) == "Four.\n"


@pytest.mark.parametrize("hold", [0, 2])
async def test_texts_are_never_spliced(log: Log, hold: int) -> None:
    """Wherever a turn breaks off: all that is heard is one model's."""
    for length in range(1, 12):
        first, pieces = "abcdefghijkl"[:length], list[str]()
        both = gate(log, Writing(*(first[: n + 1] for n in range(length)), error=BROKEN), Writing("Four."), hold=hold)
        try:
            await heard(streamed(both, ASKED), pieces)
            assert "".join(pieces) == "Four.\n" and length < max(1, 4 * hold)
        except StreamBrokenError:
            assert "".join(pieces) == first and length >= max(1, 4 * hold)


async def test_a_local_stream_that_broke_off_is_not_gone_on_with_either(log: Log) -> None:
    both = Gateway([LocalLink(Writing("ab", error=DependencyError("tiny"))), LocalLink(Writing("c"))], Vendor())
    with pytest.raises(StreamBrokenError):
        await heard(streamed(both, ASKED), [])


async def test_who_stops_listening_closes_the_connection_and_is_charged(log: Log, server: AnthropicStandIn) -> None:
    server.faults = ["slow"]
    model = claude(server)
    async with aclosing(streamed(gate(log, model), ASKED)) as pieces:
        assert await anext(pieces) == "It i"
    assert await asyncio.to_thread(server.gone.wait, 30)
    await model.close()
    [event] = await called(log)
    assert event.error == "CancelledError" and event.cost == await spent(log) > 0


async def test_a_server_that_hangs_is_stood_in_for(log: Log, server: AnthropicStandIn) -> None:
    server.faults = ["hang"]
    model, pieces = claude(server, timeout_s=0.05), list[str]()
    await heard(streamed(gate(log, model, Writing("Four.")), ASKED), pieces)
    await model.close()
    assert "".join(pieces) == "Four.\n"


@pytest.mark.parametrize("fault", ["no usage", "odd usage"])
async def test_a_stream_that_counts_nothing_costs_its_reservation(
    log: Log, server: AnthropicStandIn, fault: str
) -> None:
    server.faults = [fault]
    model, pieces = claude(server), list[str]()
    assert (await heard(streamed(gate(log, model), ASKED), pieces)).text == "".join(pieces)
    await model.close()
    [event] = await called(log)
    assert isinstance(event, ModelCalled) and (event.error, event.tokens) == ("UsageError", None)
    assert event.cost == await spent(log) > 0


@pytest.mark.parametrize("usage", ["none", [5], {"prompt_tokens": "x", "completion_tokens": float("nan")}])
def test_an_answer_whose_count_cannot_be_read_is_not_lost(usage: Any) -> None:
    reading = Reading(Way("chat", "text"))
    reading.add({"choices": [{"delta": {"content": "four"}, "finish_reason": "stop"}], "usage": usage})
    [reply] = reading.replies()
    assert (reply.text, reply.read, reply.written) == ("four", 0, 0)
    with pytest.raises(UsageError):
        read_usage("openai", {"usage": reply.counted}, "chat")


def test_a_question_is_answered_on_the_command_line(tmp_path: Path) -> None:
    with serving() as server:
        given = (
            "--set",
            f"run.verification.judge.provider=anthropic/{CLAUDE}",
            "--set",
            f"run.verification.judge.base_url={server.url}",
            "--set",
            f"router.prices.anthropic/{CLAUDE}.input=3",
            "--set",
            f"router.prices.anthropic/{CLAUDE}.output=15",
        )
        assert call("router", "ask", "6*7?", *given, home=tmp_path).out.startswith(WHOLE)
        found = call("router", "ask", "6*7?", "--json", *given, home=tmp_path).json
        assert (found["text"], found["model"]) == (WHOLE, f"anthropic/{CLAUDE}")
    assert call("router", "ask", "6*7?", "--role", "poet", home=tmp_path).code == 2
