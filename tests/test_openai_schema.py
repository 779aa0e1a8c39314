"""A teacher on a server that speaks OpenAI's API may be held to the schema of a task, whichever way it is asked."""

import json
from pathlib import Path

import jsonschema
import pytest

from agent0.infra.models.openai.dialects import Way, body
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.infra.models.transformers import BASE
from agent0.infra.weights.gguf import write_base
from agent0.rollout.prompts import prompt
from agent0.rollout.proposals import task_schema
from agent0.rollout.teacher import propose
from agent0.settings import ActorConfig
from tests.conformance_model import ask
from tests.llama_server import MISSING
from tests.llama_server import serving as llama_serving
from tests.openai_server import actor, serving

WORDS = prompt("full", "math", "teacher")


@pytest.mark.parametrize(("level", "tokenizer"), [("tokens", True), ("logprobs", False), ("sglang", True)])
@pytest.mark.parametrize("held", [True, False])
async def test_the_schema_goes_with_the_request(level: str, tokenizer: bool, held: bool) -> None:
    with serving(level=level) as server:
        config = actor(server.url, json_schema=held, **({} if tokenizer else {"tokenizer": ""}))
        model = OpenAIServer(config)
        await propose(model, WORDS, domain="math", family="linear", level=1, config=config, seed=1)
        await model.close()
        asked = server.asked[-1][1]
    found = (
        json.loads(asked["sampling_params"].get("json_schema", "null"))
        if level == "sglang"
        else asked.get("response_format", {}).get("json_schema", {}).get("schema")
    )
    assert found == (task_schema() if held else None)


def test_llama_cpp_has_a_field_of_its_own() -> None:
    request = ask()
    held = body(Way("llama.cpp", "tokens"), request, "m", [1], ())
    assert "json_schema" not in held
    held = body(Way("llama.cpp", "tokens"), type(request)(**{**vars(request), "schema": task_schema()}), "m", [1], ())
    assert held["json_schema"] == task_schema()


async def test_what_was_held_to_a_schema_is_not_trained_on() -> None:
    """A server's log-probabilities are those of any text."""
    request = ask()
    with serving() as server:
        model = OpenAIServer(actor(server.url))
        free = await model.generate(request)
        held = await model.generate(type(request)(**{**vars(request), "schema": task_schema()}))
        await model.close()
    assert free.untrainable == "" and "schema" in held.untrainable


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
async def test_a_model_that_knows_no_json_writes_it_where_it_is_held(tmp_path: Path) -> None:
    """llama.cpp with the built-in model, which was taught none. Within an object it would write spaces for ever."""
    path = tmp_path / "base.gguf"
    write_base(BASE, path)
    schema = {"enum": ["yes", "no"]}
    with llama_serving(path) as url:
        for tokenizer in (str(BASE), ""):
            model = OpenAIServer(ActorConfig(provider="openai", base_url=f"{url}/v1", tokenizer=tokenizer))
            request = ask(max_tokens=400)
            held = await model.generate(type(request)(**{**vars(request), "schema": schema}))
            free = await model.generate(request)
            await model.close()
            jsonschema.validate(json.loads(held.text), schema)
            with pytest.raises(json.JSONDecodeError):
                json.loads(free.text)
