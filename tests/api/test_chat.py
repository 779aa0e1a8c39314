"""The endpoint that other programs know: the official client talks to a checkpoint, and ids and log-probabilities are
those that the model itself gives."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI
from pydantic import ValidationError

from agent0.api.openai.answers import parts, whole
from agent0.api.openai.wire import ChatRequest
from agent0.assembly.runtime.model_ports import OpenModels
from agent0.events.base import Recorded
from agent0.events.runs import RunStarted
from agent0.events.values import Turn, Usage
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.ports.models import GenerateRequest, Generation, Sampling
from agent0.settings import Settings, StudentConfig
from tests.api.served import stored, viewed
from tests.story import renumbered, whole_run

RUNS = {"r1": "scripted", "r2": "tiny"}
QUESTION = "What is 7*8?"
MESSAGES: Any = [{"role": "user", "content": QUESTION}]
CALL = '<tool_call>{"name": "python", "arguments": {"code": "print(2)"}}</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "python", "description": "Run it.", "parameters": {}}}]


def run_of(run: str, provider: str) -> list[Recorded]:
    """The story of a run whose student is of ``provider``."""
    first, *others = whole_run(run, iterations=1)
    assert isinstance(first.event, RunStarted)
    config = {**first.event.config, "student": {"provider": provider}}
    return [first.model_copy(update={"event": first.event.model_copy(update={"config": config})}), *others]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    runs = [one for run, provider in RUNS.items() for one in run_of(run, provider)]
    home = stored(tmp_path_factory.mktemp("chat"), renumbered(runs))
    with viewed(home) as address, OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as held:
        yield held


def test_models_are_students(client: OpenAI) -> None:
    names = {one.id for one in client.models.list()}
    assert "r1/base" in names and not any("teacher" in name for name in names)
    assert client.models.retrieve("r1/base").id == "r1/base"


@pytest.mark.parametrize("run", ["r1", pytest.param("r2", marks=pytest.mark.slow)])
def test_ids_and_logprobs_are_the_models_own(client: OpenAI, tmp_path: Path, run: str) -> None:
    """What a trainer elsewhere captures: the ids that the model saw and drew, and how likely each was."""
    extra = {"return_token_ids": True}
    asked: dict[str, Any] = {
        "model": f"{run}/base",
        "messages": MESSAGES,
        "seed": 3,
        "max_tokens": 40,
        "extra_body": extra,
    }
    said = client.chat.completions.create(**asked, logprobs=True)
    request = GenerateRequest((Turn(role="user", content=QUESTION),), Sampling(1.0, 1.0, 40, 3), group="chat")
    own = asyncio.run(_generated(tmp_path, RUNS[run], request))
    found, choice = said.model_dump(), said.choices[0]
    assert found["prompt_token_ids"] == [*own.prompt_ids] and found["choices"][0]["token_ids"] == [*own.token_ids]
    assert choice.logprobs and choice.logprobs.content
    assert [one.logprob for one in choice.logprobs.content] == pytest.approx(own.logprobs, abs=1e-4)
    assert choice.message.content == own.text == "".join(one.token for one in choice.logprobs.content)
    assert said.usage and said.usage.completion_tokens == len(own.token_ids)

    text, ids, prompt = "", [], None
    for part in client.chat.completions.create(**asked, stream=True):
        prompt = prompt or part.model_dump().get("prompt_token_ids")
        for one in part.choices:
            text += one.delta.content or ""
            ids += one.model_dump().get("token_ids") or []
    assert (text, ids, prompt) == (own.text, [*own.token_ids], [*own.prompt_ids])


async def _generated(home: Path, provider: str, request: GenerateRequest) -> Generation:
    models = OpenModels(Settings(home=home), FileArtifacts(home))
    try:
        return await models.open(StudentConfig(provider=provider)).generate(request)
    finally:
        await models.close()


def test_what_cannot_be_answered_is_told_where_clients_look(client: OpenAI) -> None:
    for model, error in (
        ("r1/nothing", openai.NotFoundError),
        ("nobody/base", openai.NotFoundError),
        ("r1/teacher-0", openai.ConflictError),
        ("r1/student-0", openai.NotFoundError),  # its weights are nowhere
    ):
        with pytest.raises(error) as caught:
            client.chat.completions.create(model=model, messages=MESSAGES)
        assert isinstance(caught.value.body, dict) and caught.value.body["message"]
    for wrong in ({"stop": "x"}, {"top_logprobs": 5}, {"n": 99}, {"tool_choice": "required"}, {"temperature": 9}):
        with pytest.raises(openai.UnprocessableEntityError):
            client.chat.completions.create(model="r1/base", messages=MESSAGES, **wrong)  # type: ignore[call-overload]


def generation(text: str, size: int = 3) -> Generation:
    """``text`` in tokens of ``size`` characters."""
    ends = (*range(size, len(text), size), len(text))
    ids = tuple(range(len(ends)))
    usage = Usage(prompt_tokens=5, completion_tokens=len(ids))
    return Generation(text, ids, tuple(-0.1 * one for one in ids), (9, 8), usage=usage, ends=ends)


@pytest.mark.parametrize("text", ["", "Four. \\boxed{4}", f"I run it. {CALL}", CALL])
@pytest.mark.parametrize("tools", [None, TOOLS])
def test_parts_join_up_to_the_whole(text: str, tools: Any) -> None:
    asked = ChatRequest(
        model="m",
        messages=MESSAGES,
        tools=tools,
        n=2,
        logprobs=True,
        return_token_ids=True,
        stream_options={"include_usage": True},
    )
    written = [generation(text), generation(text, 5)]
    at_once, sent = whole(asked, {}, written), [*parts(asked, {}, written)]
    for number, choice in enumerate(at_once["choices"]):
        deltas = [chunk for part in sent for chunk in part["choices"] if chunk["index"] == number]
        joined = "".join(delta["delta"].get("content") or "" for delta in deltas)
        assert joined == (choice["message"]["content"] or "")
        assert [i for delta in deltas for i in delta.get("token_ids", ())] == choice["token_ids"]
        assert [p for delta in deltas for p in delta.get("logprobs", {}).get("content", ())] == choice["logprobs"][
            "content"
        ]
        assert [delta["finish_reason"] for delta in deltas if delta["finish_reason"]] == [choice["finish_reason"]]
        called = [call["function"] for delta in deltas for call in delta["delta"].get("tool_calls", ())]
        assert called == [call["function"] for call in choice["message"].get("tool_calls", ())]
        assert bool(called) == bool(tools and CALL in text)
    assert sent[-1]["usage"] == at_once["usage"] and sent[0]["prompt_token_ids"] == at_once["prompt_token_ids"] == [
        9,
        8,
    ]


def test_a_conversation_is_what_the_model_wrote_then() -> None:
    called = {"id": "c1", "type": "function", "function": {"name": "python", "arguments": '{"code": "print(2)"}'}}
    messages: Any = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "1+"}, {"type": "text", "text": "1?"}]},
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
    ]
    turns = ChatRequest(model="m", messages=messages).turns()
    assert [(turn.role, turn.name) for turn in turns] == [
        ("system", ""),
        ("user", ""),
        ("assistant", ""),
        ("tool", "python"),
    ]
    assert turns[1].content == "1+1?" and turns[2].content.startswith("<tool_call>") and "print(2)" in turns[2].content


def test_what_would_change_an_answer_is_not_ignored() -> None:
    for wrong in (
        {"response_format": {"type": "json_object"}},
        {"logit_bias": {"1": 5}},
        {"messages": []},
        {"stop": ["x"]},
    ):
        with pytest.raises(ValidationError):
            ChatRequest.model_validate({"model": "m", "messages": MESSAGES, **wrong})
    sampling = ChatRequest(model="m", messages=MESSAGES, max_tokens=7, max_completion_tokens=9, temperature=0).sampling(
        4
    )
    assert (sampling.temperature, sampling.max_tokens, sampling.seed) == (0, 9, 4)
