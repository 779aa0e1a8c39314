"""``agent0 router strategies`` and ``explain``, ``agent0 experiment reroute``: what was decided, and what else could
have been."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.replay.reroute import Reroute, reroute_run
from agent0.assembly.routing.billing import open_ledger
from agent0.assembly.runtime.stamping import recorded, utc_now
from agent0.config.loading import load
from agent0.events.models import CallRouted, ModelCalled
from agent0.events.runs import RunStarted
from agent0.infra.gateway.billed import Books
from agent0.infra.gateway.pins import Pins
from agent0.infra.gateway.prices import Prices
from agent0.settings import RouterSettings, RoutingConfig, RunConfig, Settings
from tests import test_strategies as examples
from tests.kept_open import attached
from tests.memory import MemoryArtifacts
from tests.terminal import agent0 as call
from tests.test_gateway import link


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with a run whose judge was routed by a threshold."""
    with attached(tmp_path_factory.mktemp("routed")) as path:
        asyncio.run(_routed(load("scripted", {"home": str(path)}, {})))
        yield path


async def _routed(held: Settings) -> None:
    async with open_log(held, make=True) as log:
        await log.append([recorded("r1", STARTED)])
        ledger = open_ledger(held, log)
        kept = Books(ledger, Prices(held.router), log, MemoryArtifacts(), recorded, utc_now, Pins(log, "segment"))
        first, second, _ = examples.writers()
        plan = examples.Plan("judge", examples.entry_of("threshold"), examples.rules_of(PLAN), {})
        links = [examples.LocalLink(first), link(kept, second, name=second.name)]
        gate = examples.StrategyGateway(links, first, plan, kept)
        for request in examples.questions("r1", 6):
            await gate.generate(replace(request, task="t1"))


PLAN = RoutingConfig(strategy="threshold", threshold=0.9)
STARTED = RunStarted(name="r1", profile="scripted", seed=0, config=RunConfig().model_dump(mode="json"), config_sha="0")


def told(home: Path, *words: str) -> Any:
    said = call(*words, "--json", home=home)
    assert said.code == 0, said.err
    return json.loads(said.out)


def test_strategies_are_listed_with_what_they_read(tmp_path: Path) -> None:
    rows = told(tmp_path, "router", "strategies")
    assert {row["strategy"]: row["reads"] for row in rows} == {
        "ab": "share",
        "budgeted": "threshold, allowance",
        "cascade": "threshold",
        "cost_aware": "worth",
        "ensemble": "",
        "local_only": "",
        "shadow": "",
        "threshold": "threshold",
    }
    assert all(row["what"] for row in rows)


def test_what_would_be_asked_is_shown_and_nobody_is_asked(tmp_path: Path) -> None:
    judge = "run.verification.judge"
    pairs = (
        f"{judge}.provider=scripted",
        f'{judge}.fallback=["anthropic/claude-sonnet-4-5"]',
        f"{judge}.routing.strategy=threshold",
    )
    words = ("router", "route", "Is 4 right?", *(word for pair in pairs for word in ("--set", pair)))
    found = told(tmp_path, *words, "--confidence", "0.5")
    assert [one["model"] for one in found["models"]] == ["scripted", "anthropic/claude-sonnet-4-5"]
    assert found["models"][0]["most"] == 0 and found["models"][1]["most"] == found["most"] > 0
    assert [one["ask"] or one["give"] for one in found["steps"]][1:] == ["anthropic/claude-sonnet-4-5"] * 2
    assert told(tmp_path, *words, "--confidence", "0.9")["most"] == 0
    people = call(*words, home=tmp_path)
    assert "confidence unknown, threshold 0.70" in people.out and "$" in people.out
    assert "has no strategy" in call("router", "route", "?", home=tmp_path).err


def test_a_call_is_explained(home: Path) -> None:
    found = told(home, "experiment", "reroute", "r1", "--strategy", "threshold", "--threshold", "0.9")
    assert (found["questions"], found["decided"], found["same"], found["then"]) == (6, 6, 6, "threshold")
    assert found["cost"] == [found["cost_then"]] * 2 and found["cost_then"] > 0
    route = _route(home)
    why = told(home, "router", "explain", route[:12])
    assert (why["route"], why["run"], why["strategy"], why["rules"]) == (route, "r1", "threshold", {"threshold": 0.9})
    assert why["chosen"] == "openai/gpt-4o-mini" and why["answers"][0]["confidence"] < 0.9
    assert [(row["model"], row["cost"] > 0) for row in why["calls"]] == [("openai/gpt-4o-mini", True)]
    missing = call("router", "explain", "0000", home=home)
    assert missing.code == 1 and "No call has the route" in missing.err


def _route(home: Path) -> str:
    async def read() -> str:
        async with open_log(load("scripted", {"home": str(home)}, {})) as log:
            events = [r.event async for r in log.read("r1", (CallRouted.__name__, ModelCalled.__name__))]
        return next(e.route for e in events if isinstance(e, CallRouted) and len(e.answers) == 2)

    return asyncio.run(read())


def test_what_nobody_asked_is_said(home: Path) -> None:
    found = told(home, "experiment", "reroute", "r1", "--strategy", "ensemble")
    assert 0 < found["decided"] < 6 and found["unknown"] == {"openai/gpt-4o-mini": 6 - found["decided"]}
    assert found["cost"][0] == found["cost_then"] < found["cost"][1] and found["cannot know"]
    people = call("experiment", "reroute", "r1", "--strategy", "ensemble", home=home)
    assert " to $" in people.out and "95 %" in people.out
    nobody = call("experiment", "reroute", "r1", "--strategy", "cascade", "--role", "teacher", home=home)
    assert nobody.code == 1 and "routing.strategy" in nobody.err


def test_other_prices_are_those_of_the_settings(home: Path) -> None:
    held = load("scripted", {"home": str(home)}, {})
    dear = {"openai/gpt-4o-mini": {"input": 1000, "output": 2000}}
    other = held.model_copy(update={"router": RouterSettings.model_validate({"prices": dear})})
    found = asyncio.run(reroute_run(other, Reroute("r1", "judge", PLAN, "settings")))
    before = asyncio.run(reroute_run(other, Reroute("r1", "judge", PLAN)))
    asked = found["calls"]["openai/gpt-4o-mini"]
    assert found["cost_then"] == found["cost"][0] == asked * (1000 * 1_000_000 + 200 * 2_000_000)
    assert before["cost_then"] < found["cost_then"] and before["decided"] == found["decided"] == 6
