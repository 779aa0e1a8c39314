"""Models as settings name them: a role, its stand-ins, their servers, over the wire of two vendors."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent0.assembly.routing.billing import actors_of, check_routing
from agent0.assembly.runtime.model_ports import OpenModels
from agent0.config.loading import load
from agent0.errors import ConfigError, UnknownPriceError
from agent0.events.base import Recorded
from agent0.events.models import ModelCalled
from agent0.events.values import Task, TokenCounts, Turn
from agent0.infra.gateway.gateway import Gateway
from agent0.infra.log.event_log import Log
from agent0.infra.models.transformers import BASE
from agent0.ports.models import GenerateRequest, Generation, Likelihood, Sampling
from agent0.rollout.confidence.self_critique import criticise
from agent0.rollout.prompts import prompt
from agent0.rollout.student import Conditions, begin, step
from agent0.rollout.teacher import propose
from agent0.routing.strategies import strategies
from agent0.settings import ActorConfig, JudgeConfig, RunConfig, Settings, StudentConfig, TeacherConfig
from agent0.verification.panel.opinion import judge_opinion
from tests.anthropic_server import serving as anthropic
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.openai_server import serving as openai

CLAUDE = "claude-sonnet-4-5"
KEY = "sk-ant-test"
ASKED = GenerateRequest((Turn(role="user", content="2+2?"),), Sampling(0.0, max_tokens=200), group="r1", task="t1")
PRICES = {f"router.prices.anthropic/{CLAUDE}.input": "3", f"router.prices.anthropic/{CLAUDE}.output": "15"}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def held(home: Path, **pairs: str) -> Settings:
    return load("scripted", {"home": str(home), **PRICES, **pairs}, {})


async def calls(log: Log) -> list[Recorded]:
    await log.queue.join()
    return [recorded async for recorded in log.read("r1", ("ModelCalled",))]


async def test_a_judge_in_the_cloud_is_one_setting_away_and_is_asked_once(log: Log, tmp_path: Path) -> None:
    with anthropic() as server:
        settings = held(tmp_path, **{"run.verification.judge.provider": f"anthropic/{CLAUDE}"})
        judge = settings.run.verification.judge.model_copy(update={"base_url": server.url})
        kept = MemoryArtifacts()
        for _ in range(2):  # as a process, and as the one that comes after it
            models = OpenModels(settings, kept, log)
            assert (await models.open(judge).generate(ASKED)).text == "It is 42."
            await models.close()
    assert len(server.asked) == 1
    first, second = await calls(log)
    event = first.event
    assert isinstance(event, ModelCalled) and isinstance(second.event, ModelCalled)
    cost = 1000 * 3000 + 200 * 15_000
    assert (event.provider, event.requested_model, event.model, event.role) == (
        "anthropic",
        CLAUDE,
        server.model,
        "judge",
    )
    assert (event.cost, event.prices, event.cache, event.capture) == (cost, "setting", "miss", "text")
    assert event.tokens == TokenCounts(read=1000, cache_read=800, written=200)
    assert event.usage.first_s is not None and first.task == "t1"
    assert (second.event.cache, second.event.cost, second.event.saved) == ("hit", 0, cost)
    everything = b"".join(kept.held.values()) + b"".join(r.to_json() for r in (first, second))
    assert KEY.encode() not in everything and b"It is 42." in everything


async def test_a_teacher_is_stood_in_for_by_another_vendor(log: Log, tmp_path: Path) -> None:
    with anthropic() as first, openai() as second:
        first.faults = ["cut"] * 9
        settings = held(
            tmp_path,
            **{
                "run.teacher.fallback": '["openai/student"]',
                "router.servers.openai.base_url": f"{second.url}/v1",
                "router.prices.openai/student.input": "1",
                "router.prices.openai/student.output": "2",
                "router.retries.tries": "0",
            },
        )
        named = {"provider": "anthropic", "model": CLAUDE, "base_url": first.url}
        models = OpenModels(settings, MemoryArtifacts(), log)
        written = await models.open(settings.run.teacher.model_copy(update=named)).generate(ASKED)
        await models.close()
    assert written.model == "openai/student" and "another model wrote it" in written.untrainable
    told = [r.event for r in await calls(log)]
    assert [(e.provider, e.role, e.reason) for e in told if isinstance(e, ModelCalled)] == [
        ("anthropic", "teacher", ""),
        ("openai", "fallback", f"anthropic/{CLAUDE}: TransientError"),
    ]


async def test_a_local_model_with_stand_ins_can_do_what_it_could(log: Log, tmp_path: Path) -> None:
    settings = held(tmp_path, **{"run.teacher.provider": "tiny", "run.teacher.fallback": f'["anthropic/{CLAUDE}"]'})
    models = OpenModels(settings, MemoryArtifacts(), log)
    model = models.open(settings.run.teacher)
    assert isinstance(model, Gateway) and isinstance(model, Likelihood)
    assert not isinstance(models.open(settings.run.student), Gateway)
    await models.close()


async def test_a_busy_vendor_is_asked_again_where_nothing_is_charged_too(tmp_path: Path) -> None:
    with anthropic() as server:
        server.faults = ["busy", "overloaded"]
        settings = held(tmp_path)
        actor = TeacherConfig(provider=f"anthropic/{CLAUDE}", base_url=server.url)
        models = OpenModels(settings, MemoryArtifacts())
        assert (await models.open(actor).generate(ASKED)).text == "It is 42."
        await models.close()
    assert len(server.asked) == 3


def test_a_price_that_nobody_knows_is_refused_before_the_run(tmp_path: Path) -> None:
    cloud = {"run.teacher.provider": "anthropic/claude-nobody-knows"}
    check_routing(held(tmp_path, **cloud))
    with pytest.raises(UnknownPriceError, match=r'router.prices."anthropic/claude-nobody-knows"'):
        check_routing(held(tmp_path, **cloud, **{"router.caps.day": "1"}))
    standing = {"run.teacher.fallback": '["anthropic/claude-nobody-knows"]', "router.caps.run": "1"}
    with pytest.raises(UnknownPriceError):
        check_routing(held(tmp_path, **standing))


def test_what_cannot_hold_is_refused_before_the_run(tmp_path: Path) -> None:
    both = {"run.teacher.fallback": f'["anthropic/{CLAUDE}"]', "router.pin": "refuse"}
    with pytest.raises(ConfigError, match="has no effect"):
        check_routing(held(tmp_path, **both))
    with pytest.raises(ConfigError, match="No judge is named"):
        check_routing(held(tmp_path, **{"run.verification.judge.routing.strategy": "cascade"}))
    with pytest.raises(ConfigError, match="names no model"):
        check_routing(held(tmp_path, **{"run.teacher.fallback": '["claude"]'}))
    assert "teacher fallback 1" in actors_of(held(tmp_path, **{"run.teacher.fallback": f'["anthropic/{CLAUDE}"]'}))


def test_roles_have_no_stand_ins_unless_told() -> None:
    assert TeacherConfig().fallback == JudgeConfig().fallback == ()
    assert "fallback" not in json.dumps(RunConfig().student.model_dump())


class Noting:
    """A model, and the port that opens it: writes down what it is asked."""

    name = "noting"

    def __init__(self) -> None:
        self.asked: list[GenerateRequest] = []

    def open(self, actor: ActorConfig) -> "Noting":
        return self

    async def generate(self, request: GenerateRequest) -> Generation:
        self.asked.append(request)
        return Generation("verdict: right")

    async def close(self) -> None:
        """Nothing is open."""


async def test_every_role_says_which_task_it_asks_for() -> None:
    model = Noting()
    task = Task(question="1+1?", domain="math", family="arithmetic", level=1, canonical="1+1")
    ask = judge_opinion(model, JudgeConfig(provider="scripted"), 0, "r1", "t1")
    assert ask and (await ask(task, "2"))[0] is True
    words = prompt("compact", "math", "teacher")
    given = {"domain": "math", "family": "arithmetic", "level": 1, "config": TeacherConfig(), "seed": 0}
    await propose(model, words, **given, group="r1", task="t2")
    config = StudentConfig(self_critique=True, max_calls=0)
    conditions = Conditions(model, config, TrustingSandbox(), MemoryArtifacts(), 0, group="r1", task="t3", attempt="a1")
    begun = begin(task, prompt("compact", "math", "student"), config)
    await step(begun, conditions)
    await criticise(model, config, (), "2", seed=0, group="r1", task="t3", attempt="a1")
    found = [(one.group, one.task, one.attempt) for one in model.asked]
    assert found == [("r1", "t1", ""), ("r1", "t2", ""), ("r1", "t3", "a1"), ("r1", "t3", "a1")]


async def test_a_model_that_is_named_by_its_server_is_routed_by_every_strategy(log: Log, tmp_path: Path) -> None:
    """By each before the server has named it; the model that stands in is one for all."""
    pairs = {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "tokenizer": str(BASE), "fallback": '["tiny/"]'}
    settings = held(tmp_path, **{f"run.verification.judge.{key}": value for key, value in pairs.items()})
    judge, models = settings.run.verification.judge, OpenModels(settings, MemoryArtifacts(), log)
    try:
        for strategy in sorted({*strategies()} - {"cost_aware", "budgeted"}):
            routing = judge.routing.model_copy(update={"strategy": strategy})
            question = (Turn(role="user", content=f"2+2? ({strategy})"),)  # else it is answered from the cache
            request = replace(ASKED, turns=question, sampling=Sampling(0.0, max_tokens=8))
            with openai(models=("whoever",)) as server:
                model = models.open(judge.model_copy(update={"routing": routing, "base_url": f"{server.url}/v1"}))
                assert [(await model.generate(request)).model for _ in range(2)], strategy
    finally:
        await models.close()
