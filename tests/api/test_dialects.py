"""Harnesses of other vendors' dialects drive a student of ours: their own clients read every answer, whole and in
parts, and what they did is recorded token by token and becomes attempts of a run."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic, AuthenticationError
from openai import AsyncOpenAI

from agent0.api.admission.keys import KeyFile
from agent0.api.app import create_app
from agent0.api.context import ApiContext
from agent0.api.openai.messages import MessageEvents, MessagesRequest
from agent0.api.openai.responses_api import ResponseEvents, ResponsesRequest
from agent0.api.openai.streams import live
from agent0.api.past import PastTables
from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.model_ports import OpenModels
from agent0.errors import StreamBrokenError
from agent0.events.submissions import TurnAnswered
from agent0.events.values import Turn
from agent0.experiments.interchange.recorded import RecordedTurn, traces
from agent0.infra.storage.artifacts import FileArtifacts
from tests.api.served import ADDRESS
from tests.api.test_chat import run_of
from tests.kept_open import attached
from tests.memory import MemoryArtifacts
from tests.pasts import keep, settings_at
from tests.terminal import agent0 as call

QUESTION, MODEL = "What is 7*8?", "r1/base"
SCHEMA = {"type": "object", "properties": {"code": {"type": "string"}}}
CALLING = 1
"""A seed with which the scripted student calls its tool."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("dialects")
    keep(folder, run_of("r1", "scripted"), MemoryArtifacts())
    with attached(folder):
        assert call("run", "list", home=folder).code == 0  # the tables are there
        yield folder


@asynccontextmanager
async def served(home: Path) -> AsyncIterator[httpx2.AsyncClient]:
    """The application over the log of ``home``, called within this process."""
    settings = settings_at(home)
    models = OpenModels(settings, FileArtifacts(home))
    async with open_log(settings, make=True) as log:
        app = create_app(ApiContext(settings, KeyFile(home), PastTables(settings), log=log, models=models))
        try:
            async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=ADDRESS) as client:
                yield client
        finally:
            await models.close()


async def with_messages(client: httpx2.AsyncClient, base: str, streams: bool, seed: int) -> list[str]:
    """A harness on Anthropic's client: it calls the tool until nobody calls it. Returns what was written."""
    tools: Any = [{"name": "python", "description": "Run it.", "input_schema": SCHEMA}]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    anthropic = AsyncAnthropic(base_url=ADDRESS + base, api_key="none", max_retries=0, http_client=client)
    written = []
    while True:
        asked: Any = {"model": MODEL, "max_tokens": 100, "messages": messages, "tools": tools, "system": "Be brief."}
        if streams:
            async with anthropic.messages.stream(**asked, extra_body={"seed": seed}) as stream:
                message = await stream.get_final_message()
        else:
            message = await anthropic.messages.create(**asked, extra_body={"seed": seed})
        written += [block.model_dump_json() for block in message.content]
        calls = [block for block in message.content if block.type == "tool_use"]
        assert message.stop_reason == ("tool_use" if calls else "end_turn") and message.usage.output_tokens
        if not calls:
            return written
        messages.append({"role": "assistant", "content": [block.model_dump() for block in message.content]})
        results = [{"type": "tool_result", "tool_use_id": block.id, "content": "56"} for block in calls]
        messages.append({"role": "user", "content": results})


async def with_responses(client: httpx2.AsyncClient, base: str, streams: bool, seed: int) -> list[str]:
    """The same on OpenAI's client, by the Responses API."""
    tools: Any = [{"type": "function", "name": "python", "parameters": SCHEMA, "strict": False}]
    items: list[Any] = [{"role": "user", "content": QUESTION}]
    openai = AsyncOpenAI(base_url=f"{ADDRESS}{base}/v1", api_key="none", max_retries=0, http_client=client)
    written = []
    while True:
        asked: Any = {"model": MODEL, "max_output_tokens": 100, "input": items, "tools": tools}
        asked |= {"instructions": "Be brief.", "extra_body": {"seed": seed}}
        if streams:
            async with openai.responses.stream(**asked) as stream:
                response: Any = await stream.get_final_response()
        else:
            response = await openai.responses.create(**asked)
        written += [item.model_dump_json() for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        assert response.status == "completed" and response.usage.output_tokens
        if not calls:
            return written
        items += [item.model_dump(exclude_none=True) for item in response.output]
        items += [{"type": "function_call_output", "call_id": item.call_id, "output": "56"} for item in calls]


async def with_chats(client: httpx2.AsyncClient, base: str, streams: bool, seed: int) -> list[str]:
    """The same by chat completions."""
    tools: Any = [{"type": "function", "function": {"name": "python", "parameters": SCHEMA}}]
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    openai = AsyncOpenAI(base_url=f"{ADDRESS}{base}/v1", api_key="none", max_retries=0, http_client=client)
    written = []
    while True:
        asked: Any = {"model": MODEL, "max_tokens": 100, "messages": messages, "tools": tools, "seed": seed}
        if streams:
            async with openai.chat.completions.stream(**asked) as stream:
                message: Any = (await stream.get_final_completion()).choices[0].message
        else:
            message = (await openai.chat.completions.create(**asked)).choices[0].message
        written.append(message.model_dump_json())
        if not message.tool_calls:
            return written
        messages.append(message.model_dump(exclude_none=True))
        messages += [{"role": "tool", "tool_call_id": each.id, "content": "56"} for each in message.tool_calls]


DIALECTS = {"messages": with_messages, "responses": with_responses, "chat": with_chats}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_harness_drives_a_student_and_is_recorded_as_attempts(kept: Path, dialect: str) -> None:
    drive = DIALECTS[dialect]

    async def driven() -> list[list[str]]:
        async with served(kept) as client:
            base = f"/v1/recordings/{dialect}"
            return [await drive(client, base, streams, CALLING + streams) for streams in (False, True)]

    assert "Nothing is recorded" in call("trajectory", "import", dialect, "--recorded", home=kept).err
    written = asyncio.run(driven())
    assert any(len(turns) > 1 for turns in written)
    result = call("trajectory", "import", dialect, "--recorded", "--json", home=kept)
    assert result.code == 0, result.err
    assert result.json["attempts"] == 2 and result.json["tasks"] == 1, result.json
    attempts = call("trajectory", "export", result.json["run"], home=kept).lines
    assert [attempt["turns"] for attempt in attempts] == [len(turns) for turns in written]
    checked = call("trajectory", "verify", result.json["run"], "--json", home=kept).json
    assert checked["whole"] == 2 and not checked["faults"] and not checked["without"], checked


async def test_what_is_not_served_is_refused_where_clients_look(kept: Path) -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("messages", {"stop_sequences": ["x"]}),
        ("messages", {"top_k": 3}),
        ("messages", {"tools": [search]}),
        ("messages", {"tool_choice": {"type": "any"}}),
        ("messages", {"max_tokens": 0}),
        ("messages", {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}),
        ("responses", {"previous_response_id": "resp_1"}),
        ("responses", {"tools": [{"type": "web_search"}]}),
        ("responses", {"text": {"format": {"type": "json_object"}}}),
        ("responses", {"background": True}),
        ("responses", {"input": []}),
        ("responses", {"input": [{"type": "item_reference", "id": "x"}]}),
    ]
    good: dict[str, dict[str, Any]] = {
        "messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "?"}]},
        "responses": {"input": "?"},
    }
    async with served(kept) as client:
        for path, fields in wrong:
            answer = await client.post(f"/v1/{path}", json={"model": MODEL} | good[path] | fields)
            assert answer.status_code == 422 and answer.json()["error"]["message"], (fields, answer.text)
        for path, fields in good.items():
            assert (await client.post(f"/v1/{path}", json={"model": "r9/base"} | fields)).status_code == 404
            streamed = await client.post(f"/v1/{path}", json={"model": "r9/base", "stream": True} | fields)
            assert streamed.status_code == 404
            hostile = await client.post(f"/v1/recordings/a..b/v1/{path}", json={"model": MODEL} | fields)
            assert hostile.status_code == 422 and "no name" in hostile.text


async def test_text_is_sent_while_it_is_written_and_a_key_comes_as_clients_send_it(kept: Path) -> None:
    asked: Any = {"model": MODEL, "max_tokens": 60, "messages": [{"role": "user", "content": QUESTION}]}
    key = KeyFile(kept).add("harness", "submit")
    try:
        async with served(kept) as client:
            anthropic = AsyncAnthropic(base_url=ADDRESS, api_key=key, max_retries=0, http_client=client)
            extra = {"seed": 3, "return_token_ids": True}
            message: Any = await anthropic.messages.create(**asked, extra_body=extra)
            assert len(message.token_ids) == len(message.logprobs["content"]) == message.usage.output_tokens
            async with anthropic.messages.stream(**asked, extra_body={"seed": 3}) as stream:
                assert await stream.get_final_text() == message.content[0].text
            stranger = AsyncAnthropic(base_url=ADDRESS, api_key="none", max_retries=0, http_client=client)
            with pytest.raises(AuthenticationError):
                await stranger.messages.create(**asked)
    finally:
        KeyFile(kept).remove("harness")


def test_what_was_asked_again_and_gone_on_with_are_attempts_each() -> None:
    def turn(text: str, *turns: Turn) -> RecordedTurn:
        event = TurnAnswered(student=MODEL, dialect="chat", turns=turns, text=text, finish="stop")
        return RecordedTurn(event, turns, None)

    user, again = Turn(role="user", content="?"), Turn(role="user", content="Sure?")
    first, second = turn("4", user), turn("5", user)
    third = turn("6", user, Turn(role="assistant", content="4 "), again)
    edited = turn("7", user, Turn(role="assistant", content="9"), again)  # nobody wrote that
    ways = [[each["response"]["choices"][0]["message"]["content"] for each in trace["turns"]]
            for trace in traces([first, second, third, edited])]  # fmt: skip
    assert ways == [["5"], ["4", "6"], ["7"]]


@pytest.mark.parametrize("events", [MessageEvents, ResponseEvents])
async def test_a_turn_that_breaks_off_ends_with_an_error(events: Any) -> None:
    async def broken() -> Any:
        yield "It i"
        raise StreamBrokenError("A turn broke off.", "", "Ask again.")

    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
    asked: Any = ResponsesRequest(model="m", input="?") if events is ResponseEvents else None
    chat = (asked or MessagesRequest.model_validate(body)).chat()
    made = events(asked, chat, "m") if asked else events(chat, "m")
    sent = [str(event) async for event in (await live(broken(), made)).body_iterator]
    assert "It i" in sent[-2] and "A turn broke off." in sent[-1]
    assert sent[-1].startswith(("event: error\n", "event: response.failed\n"))
