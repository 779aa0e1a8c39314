"""What a server refuses for good is an error that says what to do; an error that comes as an answer is none."""

import pytest

from agent0.assembly.routing.asking import dry_route
from agent0.assembly.routing.strategies import check_strategy
from agent0.config.loading import load
from agent0.errors import Agent0Error, ConfigError, RefusedError, TransientError
from agent0.infra.models.calls.refusals import error_in
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.settings import RoutingConfig
from tests.openai_server import actor, serving
from tests.test_gateway import ASKED


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("as answer", TransientError, r"an error as an answer.*worker died"),
        ("context", RefusedError, r"maximum context length.*max_tokens"),
        ("quota", RefusedError, r"Top up the account.*fallback"),
        ("gone", RefusedError, r"Set run\.<role>\.model"),
    ],
)
async def test_each_refusal_says_what_to_do(fault: str, kind: type[Agent0Error], said: str) -> None:
    with serving(level="logprobs") as server:
        model = OpenAIServer(actor(server.url, tokenizer=""), patient=False)
        await model.profile()
        server.faults = [fault]
        with pytest.raises(kind, match=said):
            await model.generate(ASKED)
        await model.close()


def test_an_error_in_an_answer_repeats_nothing_of_the_request() -> None:
    told = {"error": {"message": "bad: a question that nobody else should read"}}
    found = error_in(told, "http://x", ["a question that nobody else should read"])
    assert found and "nobody" not in str(found) and error_in({"choices": []}, "http://x", []) is None


def test_a_students_strategy_is_shown_and_named_by_its_own_settings() -> None:
    given = {"run.student.distil_from": "ollama/big", "run.student.distil_routing.strategy": "threshold"}
    found = dry_route(load("scripted", given, {}), "student", "2+2?", 0.1)
    assert [step["ask"] for step in found["steps"]] == ["scripted", "ollama/big", ""]
    with pytest.raises(ConfigError, match=r"run\.student\.distil_from"):
        dry_route(load("scripted", {}, {}), "student", "2+2?", None)
    with pytest.raises(ConfigError, match=r"run\.student\.distil_routing\.strategy.*run\.student\.distil_from"):
        check_strategy("student", RoutingConfig(strategy="cascade"), 0)
