"""A model that nobody configured is asked so that it can answer; without tools, no prompt speaks of any."""

import re
from typing import Any

import pytest

from agent0.config.loading import load
from agent0.infra.models.transformers import PACKAGED
from agent0.rollout.prompts import prompt, render, styles
from agent0.settings import JudgeConfig, StudentConfig, TeacherConfig
from agent0.settings.roles import PACKAGED_MODELS

LANGUAGE_MODELS = [
    {"provider": "openai", "model": "m"},
    {"provider": "openai/m"},
    {"provider": "ollama", "model": "qwen2.5-coder:1.5b"},
    {"provider": "ollama/tools"},
    {"provider": "anthropic/claude-x"},
    {"provider": "transformers", "model": "models/Qwen2.5-0.5B"},
    {"provider": "transformers", "model": "tools"},
    {"provider": "llamacpp", "model": "models/tools"},
    {"provider": "llamacpp", "model": "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"},
    {"provider": "a_plugin"},
]
BUILT_IN = [
    {},
    {"provider": "tiny"},
    {"provider": "tiny/climb"},
    {"provider": "scripted"},
    {"provider": "sampler"},
    {"provider": "llamacpp"},
    {"provider": "llamacpp", "model": "climb"},
    {"provider": "llamacpp/tools"},
    {"provider": None},
    {"provider": "tiny", "model": None},
]
OF_TOOLS = re.compile(r"\btools?\b|\bcalls?\b|tool_call|\bpython\(|\bsympy\b|\bAction\b", re.IGNORECASE)


def of(kind: Any, named: dict[str, Any]) -> Any:
    return kind.model_validate({name: value for name, value in named.items() if value is not None})


@pytest.mark.parametrize("kind", [StudentConfig, TeacherConfig])
def test_a_language_model_is_asked_in_words_and_has_room_to_answer(kind: Any) -> None:
    for named in LANGUAGE_MODELS:
        actor = of(kind, named)
        assert (actor.prompts, actor.max_tokens) == ("full", 1024), named
    for named in BUILT_IN:
        actor = of(kind, named)
        assert (actor.prompts, actor.max_tokens) == ("compact", 96), named


def test_what_somebody_set_stands_whatever_the_model() -> None:
    for named in (*LANGUAGE_MODELS, *BUILT_IN):
        actor = of(StudentConfig, {**named, "prompts": "compact", "max_tokens": 7})
        assert (actor.prompts, actor.max_tokens) == ("compact", 7)
        assert type(actor).model_validate(actor.model_dump()) == actor
        assert type(actor).model_validate_json(actor.model_dump_json()) == actor


def test_a_judge_writes_one_line_whoever_judges() -> None:
    assert {JudgeConfig.model_validate(named).max_tokens for named in LANGUAGE_MODELS} == {16}
    assert JudgeConfig(provider="tiny").max_tokens == 16
    assert (JudgeConfig(provider="openai").prompts, JudgeConfig(provider="tiny").prompts) == ("full", "compact")


def test_the_names_of_the_packaged_models_are_those_that_are_there() -> None:
    assert set(PACKAGED) == PACKAGED_MODELS


@pytest.mark.parametrize("profile", ["tiny", "llamacpp", "scripted"])
def test_a_profile_of_a_small_model_leaves_another_model_its_own_defaults(profile: str) -> None:
    """``--provider`` alone is enough: nothing of the profile's own model stays behind."""
    own = load(profile, env={}).run.student
    assert own.prompts == "compact"
    if profile != "scripted":
        assert own.max_tokens == 96
        other = load(profile, {"run.student.provider": "ollama", "run.student.model": "q"}, env={}).run
        assert (other.student.prompts, other.student.max_tokens) == ("full", 1024)
        assert other.teacher.prompts == "compact"


@pytest.mark.parametrize("domain", ["math", "logic", "code", "text", "science"])
@pytest.mark.parametrize("style", styles())
def test_without_tools_a_prompt_speaks_of_none(style: str, domain: str) -> None:
    turns = render(prompt(style, domain, "student", tools=False), {"question": "What is 2+2?", "domain": domain})
    assert not any(OF_TOOLS.search(turn.content) for turn in turns), turns
    assert not any(turn.role in ("tool", "assistant") for turn in turns)
    assert turns[-1].content.endswith("What is 2+2?")
    if style == "full":
        assert "\\boxed{" in turns[0].content


def test_with_tools_the_prompt_is_the_one_that_shows_calls() -> None:
    with_tools = prompt("full", "math", "student")
    assert (
        OF_TOOLS.search(with_tools.text)
        and with_tools.version != prompt("full", "math", "student", tools=False).version
    )
    assert prompt("full", "math", "student", long=True, tools=False).role == "student_long"
    for limits in ({"tools": ()}, {"max_calls": 0}):
        assert not StudentConfig.model_validate(limits).uses_tools
    assert StudentConfig().uses_tools
