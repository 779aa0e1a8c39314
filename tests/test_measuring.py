"""What a strategy measures of an answer: features, further samples, its own judgement; and what it is worth."""

import json
import math
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from agent0.assembly.routing.strategies import NAMES, check_strategy, entry_of, measure_of, rules_of
from agent0.chat_format import format_call
from agent0.errors import DependencyError, RefusedError, TransientError
from agent0.events.models import CallRouted
from agent0.events.values import Turn
from agent0.infra.gateway.gateway import LocalLink
from agent0.infra.gateway.measure import Measure
from agent0.infra.gateway.records import answer_json, read_answer
from agent0.infra.gateway.strategy_gateway import Plan, StrategyGateway
from agent0.infra.log.event_log import Log
from agent0.infra.models.openai.dialects import Way
from agent0.infra.models.openai.replies import Reading
from agent0.ports.models import GenerateRequest, Generation, Sampling
from agent0.rollout.confidence.turn_signals import answer_key, turn_signals
from agent0.routing.confidence import probability
from agent0.settings import CalibratorConfig, RoutingConfig, StudentConfig
from agent0.stats.calibrators import log_odds, sigmoid
from tests.terminal import agent0
from tests.test_gateway import ASKED, Vendor, books, link
from tests.test_strategies import decisions

QUESTION = "Solve for x: 2*x + 3 = 11."


def conversation(*outputs: str) -> GenerateRequest:
    """A question, then a call with each of ``outputs``."""
    turns = [Turn(role="user", content=QUESTION)]
    for text in outputs:
        turns += [Turn(role="assistant", content=format_call("python", {"code": "1"}))]
        turns += [Turn(role="tool", name="python", content=text)]
    return GenerateRequest(tuple(turns), Sampling(0.0, seed=7))


# --- features of a turn -----------------------------------------------------------------------------------------------


def test_tokens_tools_and_margins_of_a_turn() -> None:
    said = Generation("\\boxed{4}", logprobs=(-0.5, -0.1), margins=(0.2, 0.6))
    found = turn_signals(conversation("4", "Traceback (most recent call last):\n  NameError: x", "[refused: no]"), said)
    assert found == pytest.approx({"mean_token": math.exp(-0.3), "margin": 0.4, "grounded": 1.0, "calls_ok": 1 / 3})
    assert turn_signals(conversation("Traceback (most recent call last):\n4"), said)["grounded"] == 0.0


def test_what_is_not_known_is_absent() -> None:
    assert turn_signals(conversation(), Generation("\\boxed{4}")) == {"grounded": 0.0}
    assert turn_signals(conversation("4"), Generation("I call nothing.")) == {"calls_ok": 1.0}


@pytest.mark.parametrize(("answer", "verified"), [("4", 1.0), ("5", 0.0), ("many", None)])
def test_the_verifier_that_needs_no_right_answer_is_a_feature(answer: str, verified: float | None) -> None:
    features = measure_of(RoutingConfig(), StudentConfig()).features
    assert features(conversation(), Generation(f"\\boxed{{{answer}}}")).get("verified") == verified
    other = replace(ASKED, turns=(Turn(role="user", content="Reverse abc."),))
    assert "verified" not in features(other, Generation("\\boxed{4}"))


def test_equal_answers_have_equal_keys_whatever_is_written_around_them() -> None:
    assert answer_key("So it is \\boxed{1/2}.") == answer_key("\\boxed{ 1/2 }") == answer_key("\\boxed{0.5}")
    assert answer_key("\\boxed{4}") != answer_key("\\boxed{5}")
    assert answer_key("Verdict:  right") == answer_key("verdict: right") != answer_key("verdict: wrong")
    calls = [format_call("python", {"code": code}) for code in ("print(4)", "print(5)")]
    assert answer_key(calls[0]) != answer_key(calls[1])


@pytest.mark.parametrize(
    ("way", "part"),
    [
        (
            Way("chat", "logprobs"),
            {"choices": [{"message": {"content": "x"}, "finish_reason": "stop", "logprobs": {"content": [
                {"token": "x", "logprob": math.log(0.6), "top_logprobs": [
                    {"token": "x", "logprob": math.log(0.6)}, {"token": "y", "logprob": math.log(0.3)}]}]}}]},
        ),
        (
            Way("completions", "tokens"),
            {"choices": [{"text": "x", "finish_reason": "stop", "logprobs": {
                "tokens": ["x"], "token_logprobs": [math.log(0.6)],
                "top_logprobs": [{"x": math.log(0.6), "y": math.log(0.3)}]}}]},
        ),
        (
            Way("llama.cpp", "tokens"),
            {"content": "x", "stop": True, "stop_type": "eos", "tokens_evaluated": 1, "tokens_predicted": 1,
             "completion_probabilities": [{"id": 1, "logprob": math.log(0.6), "top_logprobs": [
                 {"id": 2, "logprob": math.log(0.3)}, {"id": 1, "logprob": math.log(0.6)}]}]},
        ),
    ],
)  # fmt: skip
def test_margins_are_read_as_each_server_tells_them(way: Way, part: dict[str, object]) -> None:
    reading = Reading(way)
    reading.add(part)
    [reply] = reading.replies()
    assert reply.margins == pytest.approx((0.3,))


def test_an_answer_that_was_kept_before_there_were_margins_is_read() -> None:
    whole = Generation("4", logprobs=(-0.1,), margins=(0.5,))
    assert read_answer(answer_json(whole)) == whole
    older = {key: value for key, value in json.loads(answer_json(whole)).items() if key != "margins"}
    assert read_answer(json.dumps(older)) == replace(whole, margins=())


# --- asking further ---------------------------------------------------------------------------------------------------


class Drawing(Vendor):
    """Answers with ``texts`` by turns, or raises what is among them; says Yes to the question whether it is right."""

    name = "tiny"

    def __init__(self, *texts: str | Exception) -> None:
        super().__init__()
        self.texts = list(texts)

    async def generate(self, request: GenerateRequest) -> Generation:
        self.asked.append(request)
        if "right?" in request.turns[-1].content:
            return Generation("Yes", logprobs=(math.log(0.9),), ends=(3,))
        said = self.texts.pop(0)
        if isinstance(said, Exception):
            raise said
        return Generation(said, logprobs=(-0.1, -0.2), model=self.name)


FURTHER = RoutingConfig(samples=3, self_critique=True)


async def test_further_samples_agree_or_not_and_the_model_judges_itself() -> None:
    model = Drawing("It is \\boxed{4}", "\\boxed{5}", "\\boxed{4}")
    found = await measure_of(FURTHER, StudentConfig()).of(model, conversation(), Generation("\\boxed{4}"))
    assert found["agreement"] == pytest.approx(2 / 3) and found["self_critique"] == pytest.approx(0.9)
    drawn = [one for one in model.asked if one.turns == conversation().turns]
    assert len({one.sampling.seed for one in drawn} | {7}) == 4 and {one.sampling.temperature for one in drawn} == {1.0}


async def test_a_model_that_costs_money_is_asked_nothing_further() -> None:
    found = await measure_of(FURTHER, StudentConfig()).of(None, conversation(), Generation("\\boxed{4}"))
    assert found == {"grounded": 0.0, "verified": 1.0}


async def test_samples_that_fail_are_missing_and_what_is_wrong_is_raised() -> None:
    measure = measure_of(RoutingConfig(samples=2), StudentConfig())
    model = Drawing(TransientError("x"), "\\boxed{5}")
    assert (await measure.of(model, conversation(), Generation("\\boxed{4}")))["agreement"] == 0.0
    away = Drawing(DependencyError("It"), TransientError("x"))
    assert "agreement" not in await measure.of(away, conversation(), Generation("\\boxed{4}"))
    with pytest.raises(RefusedError):
        await measure.of(Drawing(RefusedError("no"), "x"), conversation(), Generation("\\boxed{4}"))


def test_a_missing_feature_adds_nothing_to_the_probability() -> None:
    plan = CalibratorConfig(signal="mean_token+agreement", parameters=(0.5, 1.0, 0.0, 2.0, 0.0))
    whole = {"mean_token": 0.8, "agreement": 0.6}
    assert probability(whole, plan) == pytest.approx(sigmoid(0.5 + log_odds(0.8) + 2 * log_odds(0.6)))
    assert probability({"agreement": 0.6}, plan) == pytest.approx(sigmoid(0.5 + 2 * log_odds(0.6)))
    assert probability({"grounded": 1.0}, plan) is None


# --- decisions --------------------------------------------------------------------------------------------------------


def gate(log: Log, model: Drawing, cloud: Vendor, calibrators: dict[str, CalibratorConfig]) -> StrategyGateway:
    kept, routing = books(log), RoutingConfig(samples=2)
    measure = measure_of(routing, StudentConfig())
    plan = Plan("student", entry_of("threshold"), rules_of(routing), {}, calibrators, measure)
    return StrategyGateway([LocalLink(model), link(kept, cloud)], model, plan, kept)


async def test_a_decision_names_its_features_and_the_version_of_its_calibrator(log: Log) -> None:
    fitted = CalibratorConfig(signal="agreement", method="platt", parameters=(1.0, 0.0), version="tiny routed, base, 1")
    model = Drawing("\\boxed{4}", "\\boxed{4}", "\\boxed{4}")
    request = replace(conversation(), group="r1")
    assert (await gate(log, model, Vendor(), {"tiny": fitted}).generate(request)).text == "\\boxed{4}"
    cloud = Vendor()
    doubtful = Drawing("\\boxed{4}", "\\boxed{5}", "\\boxed{6}")
    await gate(log, doubtful, cloud, {"tiny": fitted}).generate(request)
    first, second = await decisions(log, "r1")
    assert isinstance(first, CallRouted) and first.answers[0].calibrator == "tiny routed, base, 1"
    assert first.answers[0].features["agreement"] == 1.0 and len(first.answers) == 1
    assert [one.model for one in second.answers] == ["tiny", "openai/gpt-4o"]
    assert second.answers[0].confidence == pytest.approx(sigmoid(log_odds(0.0))) and len(cloud.asked) == 1
    assert second.answers[1].calibrator == "" and "agreement" not in second.answers[1].features


@pytest.mark.parametrize("name", ["threshold", "cascade", "cost_aware", "budgeted"])
async def test_a_call_of_a_tool_that_costs_nothing_is_kept_however_doubtful_it_is(log: Log, name: str) -> None:
    """Whether to ask elsewhere is decided by the answer behind it: features of answers say nothing of calls."""
    model, cloud = (
        Drawing(format_call("python", {"code": "print(4)"}), "\\boxed{4}", "\\boxed{5}", "\\boxed{6}"),
        Vendor(),
    )
    fitted = CalibratorConfig(signal="agreement+mean_token", method="logistic", parameters=(-9.0, 1.0, 0.0, 0.1, 0.0))
    gateway = gate(log, model, cloud, {"tiny": fitted})
    rules = rules_of(RoutingConfig(worth_usd=100))
    gateway.plan = replace(gateway.plan, entry=entry_of(name), rules=rules, right={"openai/gpt-4o": 0.95})
    request = replace(conversation(), group="r1")
    assert "print(4)" in (await gateway.generate(request)).text and cloud.asked == []
    await gateway.generate(request)
    assert len(cloud.asked) == 1
    call, answer = await decisions(log, "r1")
    assert (call.answers[0].calls, len(call.answers)) == (True, 1) and "agreement" not in call.answers[0].features
    assert (answer.answers[0].calls, len(answer.answers)) == (False, 2)


def test_calibrators_may_read_what_is_measured() -> None:
    fits = CalibratorConfig(signal="+".join(NAMES), parameters=(0.0,) * (1 + 2 * len(NAMES)))
    check_strategy("teacher", RoutingConfig(strategy="cascade", calibrators={"tiny": fits}), 1)


def test_a_measure_without_settings_is_of_tokens_alone() -> None:
    assert set(Measure().features(ASKED, Generation("x", logprobs=(-0.1,)))) == {"mean_token", "lowest_token"}


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_fits_on_turns_and_prints_the_setting(tmp_path: Path) -> None:
    words = ("router", "calibrate", "--provider", "scripted", "--items", "24", "--samples", "2", "--no-critique")
    done = agent0(*words, "--resume", "cal", "--page", str(tmp_path / "page.md"), home=tmp_path)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    start = lines.index('[run.student.distil_routing.calibrators."scripted"]')
    assert lines[start + 4] == 'version = "scripted routed, base, revision 1 (cal-0)"'
    held = tomllib.loads("\n".join(lines[start:]))["run"]["student"]
    [fitted] = StudentConfig.model_validate(held).distil_routing.calibrators.values()
    check_strategy("teacher", RoutingConfig(strategy="cascade", calibrators={"scripted": fitted}), 1)
    assert "Confidence of a router" in (tmp_path / "page.md").read_text()
