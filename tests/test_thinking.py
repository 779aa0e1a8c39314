"""Thinking, its effort and the arguments of a chat template: settings that are sent as each server's wire has them, and
refused by name where a provider has no such switch."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.runtime.providers import provider_of
from agent0.assembly.validate.requirements import check_actors
from agent0.config.loading import load
from agent0.errors import Agent0Error, ConfigError
from agent0.infra.engine.chat_template import Chat, tokenizer_of
from agent0.infra.models.anthropic.messages import body as anthropic_body
from agent0.infra.models.calls.thinking import chat_fields, template_arguments
from agent0.infra.models.openai.batches import OpenAIBatches
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.infra.models.transformers import BASE
from agent0.settings import ActorConfig
from tests.batch_server import serving as batch_server
from tests.conformance_model import ask
from tests.openai_server import actor, serving

OFF, ON, LOW = {"enable_thinking": False}, {"enable_thinking": True}, {"reasoning_effort": "low"}
SENT: tuple[tuple[str, dict[str, Any], str, dict[str, Any]], ...] = (
    ("", {}, "vllm", {}),
    ("", {}, "openai", {}),
    ("off", {}, "vllm", {"chat_template_kwargs": OFF}),
    ("off", {}, "sglang", {"chat_template_kwargs": OFF}),
    ("off", {}, "llama.cpp", {"chat_template_kwargs": OFF}),
    ("off", {}, "openai", {"reasoning_effort": "none"}),
    ("off", {}, "library", {"reasoning_effort": "none"}),
    ("on", {}, "vllm", {"chat_template_kwargs": ON}),
    ("on", {}, "openai", {"reasoning_effort": "medium"}),
    ("low", {}, "openai", LOW),
    ("low", {}, "vllm", {"chat_template_kwargs": ON | LOW} | LOW),
    ("", {"thinking": False}, "vllm", {"chat_template_kwargs": {"thinking": False}}),
    ("", {"thinking": False}, "openai", {"chat_template_kwargs": {"thinking": False}}),
    ("off", {"a": 1}, "llama.cpp", {"chat_template_kwargs": OFF | {"a": 1}}),
    ("off", {"enable_thinking": True}, "vllm", {"chat_template_kwargs": ON}),
)
"""Thinking, template arguments and kind of server; what a request has of them."""


@pytest.mark.parametrize(("thinking", "named", "kind", "expected"), SENT)
def test_each_kind_of_server_is_told_in_its_own_words(
    thinking: Any, named: dict[str, Any], kind: str, expected: dict[str, Any]
) -> None:
    assert chat_fields(ActorConfig(thinking=thinking, template_arguments=named), kind) == expected


@pytest.mark.parametrize(("level", "kind"), [("tokens", "vllm"), ("sglang", "sglang")])
async def test_every_chat_request_says_it(level: str, kind: str) -> None:
    """Also those that find out what the server gives."""
    with serving(level=level) as server:
        model = OpenAIServer(actor(server.url, tokenizer="", thinking="off"))
        await model.generate(ask())
        bodies = [body for path, body in server.asked if path.endswith("completions")]
        assert len(bodies) > 1 and all(body["chat_template_kwargs"] == OFF for body in bodies)
        await model.close()


async def test_a_server_that_knows_no_such_field_is_refused_at_start() -> None:
    with serving(level="text") as server:
        model = OpenAIServer(actor(server.url, tokenizer="", thinking="off"))
        with pytest.raises(Agent0Error, match="chat_template_kwargs"):
            await model.check()
        await model.close()


TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}no thoughts\n{% endif %}{{ effort }}{% endif %}"
)


@pytest.mark.parametrize(
    ("thinking", "named", "ending"),
    [("", {}, ""), ("off", {}, "no thoughts\n"), ("on", {}, ""), ("", {"effort": "x"}, "x")],
)
def test_a_template_that_is_rendered_here_gets_them(thinking: Any, named: dict[str, Any], ending: str) -> None:
    tokenizer = tokenizer_of(str(BASE))
    tokenizer.chat_template = TEMPLATE
    chat = Chat(tokenizer, template_arguments(ActorConfig(thinking=thinking, template_arguments=named)))
    assert chat.decode(chat.prompt(ask().turns)).endswith(f"<|im_start|>assistant\n{ending}")


async def test_prompts_that_go_as_ids_are_rendered_with_them(tmp_path: Path) -> None:
    for path in BASE.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    with serving() as server:
        model = OpenAIServer(actor(server.url, tokenizer=str(tmp_path), thinking="off"))
        written = await model.generate(ask())
        found = (await model.profile()).chat
        assert found and found.decode(written.prompt_ids).endswith("no thoughts\n")
        assert not any("chat_template_kwargs" in body for _, body in server.asked)
        await model.close()


CLAUDE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("", {}),
    ("off", {"thinking": {"type": "disabled"}}),
    ("on", {"thinking": {"type": "enabled", "budget_tokens": 1500}}),
    ("high", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
)


@pytest.mark.parametrize(("thinking", "expected"), CLAUDE)
def test_anthropic_is_told_in_its_own_words(thinking: str, expected: dict[str, Any]) -> None:
    sent = anthropic_body(ask(max_tokens=3000), "m", thinking)
    assert {key: sent[key] for key in ("thinking", "output_config") if key in sent} == expected
    held = anthropic_body(replace(ask(max_tokens=3000), schema={"type": "object"}), "m", thinking)["output_config"]
    assert held["format"]["type"] == "json_schema"
    assert held.get("effort") == expected.get("output_config", {}).get("effort")


async def test_a_batch_says_it_too() -> None:
    with batch_server() as server:
        batches = OpenAIBatches(ActorConfig(provider="openai", base_url=server.url, thinking="high"))
        await batches.submit({"first": ask()})
        await batches.close()
    [[line]] = server.batches.values()
    assert line["body"]["reasoning_effort"] == "high"


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"provider": "tiny", "thinking": "off"}, "no switch for thinking"),
    ({"provider": "scripted", "thinking": "high"}, "no switch for thinking, and thinking = high"),
    ({"provider": "scripted", "template_arguments": {"a": 1}}, "template_arguments names a"),
    ({"provider": "ollama", "template_arguments": {"a": 1}}, "template_arguments names a"),
    ({"provider": "anthropic", "template_arguments": {"a": 1}}, "template_arguments names a"),
    ({"provider": "anthropic", "thinking": "minimal"}, "minimal is no level"),
    ({"provider": "anthropic", "thinking": "on", "max_tokens": 1000}, "half of max_tokens"),
    ({"provider": "anthropic", "thinking": "low", "temperature": 0.5}, "the temperature is 1"),
)
TAKEN: tuple[dict[str, Any], ...] = (
    {"provider": "tiny"},
    {"provider": "ollama", "thinking": "low"},
    {"provider": "openai", "thinking": "off", "template_arguments": {"a": 1}},
    {"provider": "transformers", "thinking": "off", "template_arguments": {"a": 1}},
    {"provider": "llamacpp", "thinking": "on", "template_arguments": {"a": 1}},
    {"provider": "anthropic", "thinking": "on", "max_tokens": 4096},
    {"provider": "anthropic", "thinking": "off", "temperature": 0.5},
)


@pytest.mark.parametrize(("given", "why"), REFUSED)
def test_what_a_provider_cannot_is_refused_by_name(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        provider_of(ActorConfig(**given))


@pytest.mark.parametrize("given", TAKEN)
def test_what_a_provider_can_is_taken(given: dict[str, Any]) -> None:
    assert provider_of(ActorConfig(**given)).name == given["provider"]


def test_a_start_refuses_it_and_a_run_records_it() -> None:
    settings = load("scripted", {"run.student.thinking": "off"}, {})
    assert settings.run.to_record()[0]["student"]["thinking"] == "off"
    with pytest.raises(ConfigError, match="thinking = off"):
        check_actors(settings)
    named = load("ollama", {"run.student.template_arguments": '{"enable_thinking": false}'}, {}).run.student
    assert named.template_arguments == {"enable_thinking": False}
    with pytest.raises(ConfigError, match=r"student\.thinking"):
        load("ollama", {"run.student.thinking": "perhaps"}, {})


@pytest.mark.parametrize(
    ("settings", "reply", "stops"),
    [
        ({}, {"content": "plain"}, True),
        ({"thinking": "off"}, {"content": "plain"}, True),
        ({"thinking": "on"}, {"content": "plain"}, False),
        ({"thinking": "low"}, {"content": "plain"}, False),
        ({}, {"reasoning_content": "hm"}, False),
        ({}, {"content": "<think>\nhm"}, False),
    ],
)
async def test_stop_texts_end_no_thought(settings: dict[str, Any], reply: dict[str, Any], stops: bool) -> None:
    with serving(level="logprobs") as server:
        server.replies = [[{"choices": [{"delta": reply, "finish_reason": "stop"}]}]]
        model = OpenAIServer(actor(server.url, tokenizer="", **settings))
        await model.profile()
        request = ask()
        await model.generate(replace(request, sampling=replace(request.sampling, stop=("```\n",))))
        assert (server.asked[-1][1].get("stop") == ["```\n"]) == stops
        await model.close()
