"""A checkpoint that is evaluated through a strategy, paired with itself alone and the other model alone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.evaluation.routed import Plan, evaluate_routed
from agent0.assembly.log.access import open_log
from agent0.config.loading import load
from agent0.errors import BudgetExhaustedError, ConfigError
from agent0.evaluation.routed import WayScore
from agent0.events.benchmarks import ItemScored
from agent0.events.budgets import BudgetChanged
from agent0.settings import Settings
from agent0.tasks.families import families
from agent0.tasks.splits import heldout
from tests.anthropic_server import AnthropicStandIn, Part
from tests.test_routed_models import CLAUDE, PRICES, anthropic

COUNT = 12
CLOUD = f"anthropic/{CLAUDE}"


def settings_of(home: Path, url: str, **more: str) -> Settings:
    given = {
        "home": str(home),
        "run.student.provider": "scripted",
        "run.student.max_calls": "0",
        "run.student.distil_from": CLOUD,
        "run.student.distil_routing.strategy": "threshold",
        "run.student.distil_routing.threshold": "0.62",
        **PRICES,
        "router.servers.anthropic.base_url": url,
        "router.servers.anthropic.key_env": "A0_TEST_KEY",
    }
    return load("scripted", given | more, {"A0_TEST_KEY": "sk-ant-test"})


def knowing(server: AnthropicStandIn) -> None:
    """Make the cloud answer each task right; it writes more than it needs to."""
    known = {one.question: families()[one.family].solve(one.params) for one in heldout("test", COUNT, 0)}
    usual = server.parts

    def parts(fault: str) -> Iterator[Part]:
        asked = server.asked[-1]["messages"][0]["content"]
        right = next(answer for question, answer in known.items() if question in asked)
        server.blocks = [f"\\boxed{{{right}}}"]
        return usual(fault)

    server.parts = parts  # type: ignore[method-assign]


def by_way(found: Any) -> dict[str, WayScore]:
    return {standing.way: standing for standing in found.standings}


async def test_a_strategy_is_paired_with_both_models_alone_and_asks_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A0_TEST_KEY", "sk-ant-test")
    plan = Plan(COUNT, at_once=1)
    with anthropic() as server:
        knowing(server)
        settings = settings_of(tmp_path, server.url)
        found = await evaluate_routed(settings, plan, "r")
        asked = len(server.asked)
        assert await evaluate_routed(settings, plan, "r") == found and len(server.asked) == asked
    ways = by_way(found)
    escalated = ways["routed"].by[CLOUD]
    assert ways["cloud"].by == {CLOUD: COUNT} and ways["local"].by == {"scripted": COUNT}
    assert 0 < escalated < COUNT and ways["routed"].by["scripted"] == COUNT - escalated
    assert ways["cloud"].accuracy == 1.0 > ways["routed"].accuracy > ways["local"].accuracy
    assert ways["local"].cost == 0 < ways["routed"].cost < ways["cloud"].cost and asked == escalated + COUNT
    against = {one.against: one for one in found.paired}
    assert against["local"].difference.gained == ways["routed"].right - ways["local"].right
    assert against["local"].difference.lost == 0 == against["cloud"].difference.gained
    assert against["cloud"].cost_share == pytest.approx(ways["routed"].cost / ways["cloud"].cost)
    async with open_log(settings) as log:
        events = [one.event async for one in log.read("r")]
    scored = [event for event in events if isinstance(event, ItemScored)]
    assert {type(event).__name__ for event in events} == {
        "BenchmarkStarted", "ItemScored", "ModelCalled", "CallRouted", "BudgetChanged"
    }  # fmt: skip  # no attempt of a run, so nothing to train on
    labelled = [one for one in scored if one.authors]
    assert len(labelled) == escalated and {*labelled[0].authors} == {CLOUD}
    spent = [event.spent for event in events if isinstance(event, BudgetChanged) and event.scope == "run"]
    assert spent[-1] == ways["routed"].cost + ways["cloud"].cost


async def test_a_budget_that_ends_keeps_what_was_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A0_TEST_KEY", "sk-ant-test")
    plan = Plan(COUNT, ways=("cloud",), at_once=1)
    with anthropic() as server:
        knowing(server)
        tight = settings_of(tmp_path, server.url, **{"router.caps.run": "0.05"})
        with pytest.raises(ExceptionGroup) as stopped:
            await evaluate_routed(tight, plan, "r")
        assert stopped.value.subgroup(BudgetExhaustedError)
        before = len(server.asked)
        assert 0 < before < COUNT
        found = await evaluate_routed(settings_of(tmp_path, server.url, **{"router.caps.run": "5"}), plan, "r")
        assert len(server.asked) == COUNT and by_way(found)["cloud"].tasks == COUNT


async def test_there_must_be_a_model_that_stands_in(tmp_path: Path) -> None:
    alone = settings_of(tmp_path, "http://127.0.0.1:1", **{"run.student.distil_from": "[]"})
    with pytest.raises(ConfigError, match="no model that stands in"):
        await evaluate_routed(alone, replace(Plan(), items=4), "r")
