"""Strategies as pure functions, and that a replay of live calls comes to what the calls came to."""

import asyncio
import math
import random
from dataclasses import replace
from typing import Any

import pytest

from agent0.assembly.routing.strategies import check_strategy, entry_of, rules_of
from agent0.errors import ConfigError, NotSentError, RefusedError, TransientError
from agent0.events.models import CallRouted
from agent0.events.values import Turn
from agent0.experiments.reroute import reroute
from agent0.infra.gateway.gateway import LocalLink
from agent0.infra.gateway.strategy_gateway import Plan, StrategyGateway
from agent0.infra.log.event_log import Log
from agent0.ports.models import GenerateRequest, Generation
from agent0.routing.confidence import features, probability
from agent0.routing.strategies import Answer, Option, Question, Rules, strategies
from agent0.routing.strategies.builtin import weigh
from agent0.routing.walk import RecordedQuestion, walk, walk_all
from agent0.settings import CalibratorConfig, RoutingConfig
from agent0.stats.calibrators import log_odds, sigmoid
from tests.test_gateway import ASKED, Vendor, books, link

HOME, CLOUD, BEST = Option("tiny", 0, 0.6), Option("cloud", 100, 0.9), Option("best", 1000, 0.95)
OPTIONS = (HOME, CLOUD, BEST)
RULES = Rules(threshold=0.7, worth=1000, share=0.5, allowance=10_000)


def recorded(home: float | None = 0.5, cloud: float | None = 0.8, best: float | None = None) -> RecordedQuestion:
    """The three models disagree in pairs: ``tiny`` says a, the others b."""
    answers = {
        "tiny": Answer("tiny", "a", home, 0),
        "cloud": Answer("cloud", "b", cloud, 40),
        "best": Answer("best", "b", best, 400),
    }
    return RecordedQuestion(OPTIONS, answers, draw=0.25)


def asked(name: str, one: RecordedQuestion, rules: Rules = RULES, spent: int = 0) -> tuple[list[str], str]:
    """Whom the strategy asks, and whose answer it gives."""
    routed = walk(strategies()[name].decide, one, rules, spent)
    return [answer.model for answer in routed.answers], routed.chosen


@pytest.mark.parametrize(
    ("name", "one", "rules", "wanted"),
    [
        ("local_only", recorded(0.1), RULES, (["tiny"], "tiny")),
        ("threshold", recorded(0.7), RULES, (["tiny"], "tiny")),
        ("threshold", recorded(0.69), RULES, (["tiny", "cloud"], "cloud")),
        ("threshold", recorded(None), RULES, (["tiny", "cloud"], "cloud")),
        ("cascade", recorded(0.5, 0.8), RULES, (["tiny", "cloud"], "cloud")),
        ("cascade", recorded(0.5, 0.6, 0.55), RULES, (["tiny", "cloud", "best"], "cloud")),
        ("cascade", recorded(0.5, 0.6, None), RULES, (["tiny", "cloud", "best"], "best")),
        ("cascade", recorded(None, None, None), RULES, (["tiny", "cloud", "best"], "best")),
        ("cost_aware", recorded(0.5), RULES, (["tiny", "cloud"], "cloud")),
        ("cost_aware", recorded(0.85), RULES, (["tiny"], "tiny")),
        ("cost_aware", recorded(0.5, 0.5), replace(RULES, worth=10_000), (["tiny", "cloud", "best"], "best")),
        ("cost_aware", recorded(None, None, None), RULES, (["tiny", "cloud"], "cloud")),
        ("cost_aware", recorded(0.1), replace(RULES, worth=0), (["tiny"], "tiny")),
        ("budgeted", recorded(0.5), RULES, (["tiny", "cloud"], "cloud")),
        ("budgeted", recorded(0.5), replace(RULES, allowance=99), (["tiny"], "tiny")),
        ("ensemble", recorded(0.8, 0.6, 0.6), RULES, (["tiny", "cloud", "best"], "tiny")),
        ("ensemble", recorded(0.8, 0.7, 0.7), RULES, (["tiny", "cloud", "best"], "cloud")),
        ("ab", recorded(), RULES, (["cloud"], "cloud")),
        ("ab", recorded(), replace(RULES, share=0.2), (["tiny"], "tiny")),
        ("shadow", recorded(0.1, 0.99), RULES, (["tiny", "cloud", "best"], "tiny")),
    ],
)
def test_each_strategy(name: str, one: RecordedQuestion, rules: Rules, wanted: tuple[list[str], str]) -> None:
    assert asked(name, one, rules) == wanted


@pytest.mark.parametrize("name", sorted(strategies()))
def test_every_strategy_ends_and_gives_an_answer_that_it_asked_for(name: str) -> None:
    rng = random.Random(0)
    for _ in range(200):
        options = tuple(Option(str(n), rng.choice([0, 5, None]), rng.choice([None, 0.3, 0.9])) for n in range(3))
        options = (Option("0", 0, 0.5), *options[1:])
        answers = {
            option.model: Answer(option.model, rng.choice("ab"), rng.choice([None, 0.2, 0.9]), 3) for option in options
        }
        routed = walk(strategies()[name].decide, RecordedQuestion(options, answers, rng.random()), RULES)
        assert routed.chosen in {answer.model for answer in routed.answers}
        assert len({answer.model for answer in routed.answers}) == len(routed.answers)


def test_an_allowance_is_never_exceeded() -> None:
    """Whatever the answers cost, as long as none costs more than it might."""
    rng = random.Random(1)
    rules = replace(RULES, allowance=550, threshold=1.0)
    routed = walk_all(strategies()["budgeted"].decide, [recorded(rng.random() * 0.9) for _ in range(50)], rules)
    assert 450 < sum(one.cost for one in routed) <= 550
    assert len([one for one in routed if one.chosen == "cloud"]) == 550 // 40 - 1  # the last must fit at its dearest


def test_votes_weigh_what_they_are_worth() -> None:
    votes = [Answer("a", "x", 0.6), Answer("b", "x", 0.6), Answer("c", "y", 0.9)]
    won = weigh(votes, {})
    assert (won.model, won.votes) == ("c", 1) and 0.75 < won.probability < 0.85
    assert weigh([Answer("a", "x"), Answer("b", "y")], {"b": 0.8}).model == "b"
    assert weigh([Answer("a", "x"), Answer("b", "y")], {}).model == "a"
    assert weigh([Answer("a", "x", 0.1), Answer("b", "y")], {}).model == "b"  # it is probably wrong


def test_a_calibrator_makes_a_probability_of_features() -> None:
    sure = features(ASKED, Generation("x", logprobs=(-0.1, -0.3)))
    assert sure == pytest.approx({"mean_token": math.exp(-0.2), "lowest_token": math.exp(-0.3)})
    assert probability(sure, None) == sure["mean_token"] and probability({}, None) is None
    halved = CalibratorConfig(signal="mean_token", method="platt", parameters=(0.0, 0.0))
    assert probability(sure, halved) == 0.5 and probability({}, halved) is None
    both = CalibratorConfig(signal="mean_token+lowest_token", parameters=(0.0, 1.0, 0.0, 1.0, 0.0))
    odds = [log_odds(sure[name]) for name in sure]
    assert probability(sure, both) == pytest.approx(sigmoid(sum(odds)))
    assert probability({"mean_token": 0.9}, both) == pytest.approx(0.9)  # what is missing adds nothing


def test_settings_that_cannot_decide_are_refused() -> None:
    with pytest.raises(ConfigError, match="no strategy 'cascad'"):
        check_strategy("judge", RoutingConfig(strategy="cascad"), 1)
    with pytest.raises(ConfigError, match=r"run\.verification\.judge\.routing.*nothing to choose"):
        check_strategy("judge", RoutingConfig(strategy="cascade"), 0)
    with pytest.raises(ConfigError, match="worth"):
        check_strategy("teacher", RoutingConfig(strategy="cost_aware", worth_usd=1), 1)
    with pytest.raises(ConfigError, match="allowance"):
        check_strategy("teacher", RoutingConfig(strategy="budgeted"), 1)
    check_strategy("teacher", RoutingConfig(strategy="budgeted", allowance_usd=0), 1)
    for signal, parameters in (("checked", (1.0, 0.0)), ("mean_token", (1.0,))):
        plan = CalibratorConfig(signal=signal, method="platt", parameters=parameters)
        with pytest.raises(ConfigError, match=r"calibrators\.tiny is no whole calibrator"):
            check_strategy("teacher", RoutingConfig(strategy="cascade", calibrators={"tiny": plan}), 1)
    assert rules_of(RoutingConfig(worth_usd=0.5)).worth == 500_000_000


# --- live -------------------------------------------------------------------------------------------------------------


class Writer(Vendor):
    """Answers and is sure of it by a fixed draw from the question, as a real model would be at temperature 0."""

    def __init__(self, name: str, right: float, sure: bool = True) -> None:
        super().__init__()
        self.name, self.right, self.sure = name, right, sure

    async def generate(self, request: GenerateRequest) -> Generation:
        written = await super().generate(request)
        rng = random.Random(f"{self.name} {request.turns[-1].content}")
        is_right = rng.random() < self.right
        logprob = -0.2 * rng.random() if is_right else -rng.random()
        text = "four" if is_right else self.name
        return replace(written, text=text, model=self.name, logprobs=(logprob,) if self.sure else ())


def routed(log: Log, name: str, writers: tuple[Writer, ...], routing: RoutingConfig) -> StrategyGateway:
    kept = books(log)
    links = [LocalLink(writers[0]), *(link(kept, writer, name=writer.name) for writer in writers[1:])]
    plan = Plan("judge", entry_of(name), rules_of(routing), routing.right, routing.calibrators)
    return StrategyGateway(links, writers[0], plan, kept)


def writers() -> tuple[Writer, ...]:
    return Writer("tiny", 0.5), Writer("gpt-4o-mini", 0.7), Writer("gpt-4o", 0.95, sure=False)


def questions(run: str, count: int = 12) -> list[GenerateRequest]:
    return [replace(ASKED, group=run, turns=(Turn(role="user", content=f"{n}+1?"),)) for n in range(count)]


async def decisions(log: Log, run: str) -> list[CallRouted]:
    await log.queue.join()
    return [r.event async for r in log.read(run, ("CallRouted",)) if isinstance(r.event, CallRouted)]


RIGHT = {"openai/gpt-4o-mini": 0.7, "openai/gpt-4o": 0.95}
ROUTING = RoutingConfig(threshold=0.85, worth_usd=0.2, share=0.4, allowance_usd=0.04, right=RIGHT)


async def test_a_replay_comes_to_what_really_running_comes_to(log: Log) -> None:
    """All answers were recorded by one run; each strategy is replayed on them, and really run with the same models."""
    for request in questions("rec"):
        await routed(log, "ensemble", writers(), ROUTING).generate(request)
    past = await decisions(log, "rec")
    for name in strategies():
        given = []
        gate = routed(log, name, writers(), ROUTING)
        for request in questions(f"run-{name}"):
            given.append((await gate.generate(request)).text)
        real = await decisions(log, f"run-{name}")
        told = reroute(past, entry_of(name), rules_of(ROUTING))
        assert (told.decided, told.unknown, told.cost[0]) == (12, {}, told.cost[1])
        assert told.cost[0] == sum(answer.cost or 0 for event in real for answer in event.answers)
        assert sum(told.calls.values()) == sum(len(event.answers) for event in real)
        rerouted = walk_all(entry_of(name).decide, [_recorded(event) for event in past], rules_of(ROUTING))
        assert [one.chosen for one in rerouted] == [event.chosen for event in real]


def _recorded(event: CallRouted) -> RecordedQuestion:
    from agent0.experiments.reroute import recorded_of

    return recorded_of(event, {})


async def test_what_nobody_asked_stays_unknown(log: Log) -> None:
    gate = routed(log, "threshold", writers(), ROUTING)
    for request in questions("r1"):
        await gate.generate(request)
    past = await decisions(log, "r1")
    sure = sum(len(event.answers) == 1 for event in past)
    assert 0 < sure < 12
    told = reroute(past, entry_of("cascade"), replace(rules_of(ROUTING), threshold=1.0))
    assert told.decided == 0 and sum(told.unknown.values()) == 12
    assert told.unknown == {"openai/gpt-4o-mini": sure, "openai/gpt-4o": 12 - sure}
    assert told.cost[1] is not None and told.cost[0] < told.cost[1] and told.same95 == (0, 1)
    again = reroute(past, entry_of("threshold"), rules_of(ROUTING))
    assert (again.decided, again.same) == (12, 12) and again.cost == (again.cost_then, again.cost_then)


async def test_a_decision_says_what_it_knew(log: Log) -> None:
    home, cloud, _ = writers()
    doubt = CalibratorConfig(signal="mean_token", method="platt", parameters=(0.0, -1.0))
    gate = routed(log, "threshold", (home, cloud), RoutingConfig(right=RIGHT, calibrators={"tiny": doubt}))
    written = await gate.generate(replace(ASKED, task="t1"))
    [event] = await decisions(log, "r1")
    assert (event.task, event.strategy, event.rules) == ("t1", "threshold", {"threshold": 0.7})
    assert [option.model for option in event.options] == ["tiny", "openai/gpt-4o-mini"]
    assert event.options[0].cost == 0 and event.options[1].cost and event.options[1].right == 0.7
    first = event.answers[0]
    assert first.confidence == pytest.approx(sigmoid(-1)) and 0.3 < first.features["mean_token"] < 1
    assert [step.ask or step.give for step in event.steps] == ["tiny", "openai/gpt-4o-mini", "openai/gpt-4o-mini"]
    assert "confidence 0.27, threshold 0.70" in event.steps[1].reason
    assert "another model wrote it" in written.untrainable


async def test_models_that_cannot_be_asked_are_passed_over_and_named(log: Log) -> None:
    home, cloud, best = writers()
    cloud.error, home.error = TransientError("500"), NotSentError("It")
    written = await routed(log, "cascade", (home, cloud, best), RoutingConfig(threshold=1)).generate(ASKED)
    [event] = await decisions(log, "r1")
    assert event.chosen == "openai/gpt-4o" and written.model == "gpt-4o"
    assert [option.refused for option in event.options] == ["NotSentError", "TransientError", ""]
    best.error = TransientError("500")
    with pytest.raises(NotSentError):
        await routed(log, "cascade", (home, cloud, best), RoutingConfig()).generate(ASKED)


async def test_a_comparison_that_fails_costs_no_answer(log: Log) -> None:
    home, cloud, best = writers()
    cloud.error = TransientError("500")
    written = await routed(log, "shadow", (home, cloud, best), RoutingConfig()).generate(ASKED)
    assert written.model == "tiny" and written.untrainable == "" and len(best.asked) == 1


async def test_local_only_spends_nothing_even_where_that_means_no_answer(log: Log) -> None:
    home, cloud, _ = writers()
    kept = books(log)
    plan = Plan("judge", entry_of("local_only"), Rules(), {})
    gate = StrategyGateway([link(kept, cloud), link(kept, home)], cloud, plan, kept)
    with pytest.raises(RefusedError, match="every model costs money"):
        await gate.generate(ASKED)
    assert cloud.asked == home.asked == []


async def test_an_allowance_holds_across_processes(log: Log) -> None:
    spent = []
    for request in questions("r1", 8):
        gate = routed(log, "budgeted", (writers()[0], writers()[1]), never_sure(0.0014))
        await gate.generate(request)
        spent.append(sum(answer.cost or 0 for e in await decisions(log, "r1") for answer in e.answers))
    assert 0 < spent[-1] <= 1_400_000 and spent[-1] == spent[-2]


async def test_an_allowance_holds_for_questions_at_once(log: Log) -> None:
    gate = routed(log, "budgeted", (writers()[0], writers()[1]), never_sure(0.0014))
    await asyncio.gather(*map(gate.generate, questions("r1", 8)))
    for request in questions("r1", 8):
        await gate.generate(request)
    spent = [answer.cost or 0 for e in await decisions(log, "r1") for answer in e.answers]
    assert 0 < sum(spent) <= 1_400_000


def never_sure(allowance: float) -> RoutingConfig:
    """Never sure, and so much may be spent."""
    return RoutingConfig(threshold=1, allowance_usd=allowance)


def test_an_open_question_is_about_those_not_asked() -> None:
    held: Any = Question(OPTIONS).answered(Answer("tiny", "a")).without("best")
    assert held.open == (CLOUD,)
