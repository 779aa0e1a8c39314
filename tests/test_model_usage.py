"""What calls of remote models took and cost: counted once, by model, role, domain and day, and by iteration."""

import json
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

import agent0
from agent0.errors import ConfigError
from agent0.events.base import Event, Recorded, record
from agent0.events.budgets import DOLLAR
from agent0.events.models import CallRouted, ModelCalled
from agent0.events.values import RouteAnswer, RouteOption, RouteStep, TokenCounts, Usage
from agent0.projections import Projector, tables
from agent0.projections.evaluations import learning_curve
from agent0.projections.model_usage import BY, model_stats, stats_by_each
from agent0.projections.tasks import show_task
from tests.api.served import stored
from tests.story import bodies, renumbered, whole_run
from tests.terminal import agent0 as call

STORY = whole_run(iterations=2, tasks=2, attempts=2)
FIRST, LAST = (next(e for e in rows if e.type == "TaskRequested").task for rows in (STORY, STORY[::-1]))
LOCAL, NEAR, FAR = "local", "openai/near", "anthropic/far"


def called(model: str, task: str = FIRST, **more: object) -> ModelCalled:
    vendor, _, name = model.partition("/")
    known: dict[str, object] = {
        "role": "judge",
        "finish": "stop",
        "usage": Usage(prompt_tokens=10, completion_tokens=5, wall_s=0.3),
        "tokens": TokenCounts(read=10, written=5, cache_read=4),
        "cost": DOLLAR // 100,
    }
    return ModelCalled(task=task, provider=vendor, model=f"{name}-2026", requested_model=name, **{**known, **more})


def routed(*asked: str, given: str) -> CallRouted:
    return CallRouted(
        task=FIRST,
        route="r",
        role="judge",
        strategy="cascade",
        options=tuple(RouteOption(model=one) for one in (LOCAL, NEAR, FAR)),
        answers=tuple(RouteAnswer(model=one, key="k") for one in asked),
        steps=(RouteStep(give=given),),
        chosen=given,
    )


CALLS: list[Event] = [
    called(NEAR),
    called(NEAR, error="ServerBusyError", finish="error", usage=Usage(), tokens=None, cost=0),
    called(NEAR, retries=1),
    called(NEAR, cache="hit", usage=Usage(), tokens=TokenCounts(), cost=0, saved=DOLLAR // 100),
    called(FAR, task=LAST, role="teacher", cost=None, usage=Usage(wall_s=3.0)),
    called(FAR, task="-", usage=Usage(wall_s=3.0)),
    routed(LOCAL, given=LOCAL),
    routed(LOCAL, NEAR, given=NEAR),
    routed(LOCAL, NEAR, FAR, given=FAR),
]


def events() -> list[Recorded]:
    """The story's run with these calls behind it, the last three a day later."""
    run = STORY[0].run
    own = [e for e in STORY if e.type != "ModelCalled"]
    told = [record(one, run=run, time=STORY[-1].time + timedelta(days=n > 5)) for n, one in enumerate(CALLS)]
    return renumbered([*own, *told], 0)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("calls"), events())


@pytest.fixture(scope="module")
def db() -> sqlite3.Connection:
    held = sqlite3.connect(":memory:", isolation_level=None)
    Projector(Path("memory"), lambda _: held, tables(), "stream").apply(bodies(events()))
    return held


def test_every_try_is_counted_by_model(db: sqlite3.Connection) -> None:
    rows = {row["model"]: row for row in model_stats(db)}
    near, far = rows[NEAR], rows[FAR]
    assert [near[name] for name in ("calls", "errors", "retries", "hits", "cost", "saved", "unpriced")] == [
        4, 1, 1, 1, DOLLAR // 50, DOLLAR // 100, 0,
    ]  # fmt: skip
    assert (near["read"], near["written"], near["cache_read"]) == (20, 10, 8)
    assert near["mean_ms"] == 300 and 200 < near["p50_ms"] < near["p95_ms"] <= 500  # neither failure nor cache
    assert (far["calls"], far["unpriced"], far["cost"]) == (2, 1, DOLLAR // 100)
    assert {name: (row["escalations"], row["chosen"]) for name, row in rows.items()} == {
        LOCAL: (0, 1), NEAR: (2, 1), FAR: (1, 1),
    }  # fmt: skip
    assert rows[LOCAL]["calls"] == 0 and rows[LOCAL]["p50_ms"] is None


def test_groups_hold_the_same_calls(db: sqlite3.Connection) -> None:
    whole = {name: sum(row[name] for row in model_stats(db)) for name in ("calls", "cost", "escalations")}
    for by in (["role"], ["domain"], ["day"], ["day", "model", "role", "domain"]):
        rows = model_stats(db, by)
        assert {name: sum(row[name] for row in rows) for name in whole} == whole
    assert stats_by_each(db) == {name: model_stats(db, [name]) for name in BY}
    assert [row["calls"] for row in model_stats(db, ["day"])] == [0, 6]  # the newest first
    domains = {show_task(db, STORY[0].run, one)["domain"] for one in (FIRST, LAST)}
    assert {row["domain"] for row in model_stats(db, ["domain"])} == {*domains, ""}
    assert model_stats(db, run="another") == []
    for odd in ((), ("month",)):
        with pytest.raises(ConfigError, match="cannot be counted"):
            model_stats(db, odd)


def test_an_iteration_costs_what_its_tasks_cost(db: sqlite3.Connection) -> None:
    costs = {point["iteration"]: point["cost_usd"] for point in learning_curve(db, STORY[0].run)}
    assert costs == {-1: None, 0: 0.02, 1: None}  # nobody knows what the last one's call cost


def test_every_face_says_the_same(home: Path) -> None:
    rows = json.loads(call("router", "stats", "--by", "model", "--run", "LAST", "--json", home=home).out)
    assert rows == agent0.open(home, read_only=True).router_stats() and len(rows) == 3
    people = call("router", "stats", "--by", "role", "--by", "domain", home=home)
    assert "judge" in people.out and people.out.startswith("role\tdomain\tcalls")
    people = call("router", "stats", home=home)
    assert NEAR in people.out and "$0.02" in people.out and "$0.01 and more" in people.out
    assert "cost_usd" in call("run", "show", "LAST", "--full", home=home).out
    odd = call("router", "stats", "--by", "month", home=home)
    assert odd.code == 2 and "month" in odd.err


def test_no_calls_lead_on(tmp_path: Path) -> None:
    own = renumbered([e for e in STORY if e.type != "ModelCalled"], 0)
    said = call("router", "stats", home=stored(tmp_path, own))
    assert said.code == 0 and "agent0 router budget set" in said.err and "Nothing." not in said.err
