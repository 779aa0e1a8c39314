"""Models as runs open them: what costs money stands behind the budgets, and nothing passes them by."""

from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.routing.billing import open_ledger
from agent0.assembly.routing.gate import vendor_billing
from agent0.assembly.runtime.model_ports import OpenModels
from agent0.config.loading import load
from agent0.errors import BudgetExhaustedError, ConfigError
from agent0.events.models import ModelCalled
from agent0.events.values import Turn
from agent0.infra.gateway.gateway import Gateway
from agent0.infra.gateway.ledger import Account
from agent0.infra.log.event_log import Log
from agent0.ports.models import GenerateRequest, Sampling
from agent0.settings import RouterSettings, Settings, TeacherConfig
from tests.memory import MemoryArtifacts
from tests.openai_server import actor, serving

ASKED = GenerateRequest((Turn(role="user", content="2+2?"),), Sampling(max_tokens=16), group="r1")
RUN = Account("run", "r1")


def held(home: Path, cap: float | None = None, **prices: Any) -> Settings:
    router = {"caps": {"run": cap}, "prices": prices or {"openai/costly": {"input": 1, "output": 2}}}
    return load("scripted", {"home": str(home)}, {}).model_copy(update={"router": RouterSettings(**router)})


async def test_a_call_of_a_run_is_charged_waits_and_goes_on(log: Log, tmp_path: Path) -> None:
    with serving() as server:
        given = actor(server.url, model="student", tokenizer="")
        assert not isinstance(OpenModels(held(tmp_path), MemoryArtifacts(), log).open(given), Gateway)
        dear = held(tmp_path, 0.001, **{"openai/student": {"input": 1, "output": 2}})
        models = OpenModels(dear, MemoryArtifacts(), log)
        model = models.open(given)
        assert isinstance(model, Gateway) and models.open(given) is model
        with pytest.raises(BudgetExhaustedError):
            await model.generate(ASKED)
        assert server.asked == []
        ledger = open_ledger(dear, log)
        await ledger.set_cap(RUN, 10_000_000)
        written = await model.generate(ASKED)
        await models.close()
    await log.queue.join()
    spent = written.usage.prompt_tokens * 1000 + written.usage.completion_tokens * 2000
    balance = await ledger.balance(RUN)
    assert (balance.spent, balance.open) == (spent, ()) and spent > 0
    [event] = [r.event async for r in log.read("r1", ("ModelCalled",))]
    assert isinstance(event, ModelCalled) and (event.role, event.cost) == ("student", spent)


def test_roles_share_a_model_and_are_told_apart(log: Log, tmp_path: Path) -> None:
    models = OpenModels(held(tmp_path), MemoryArtifacts(), log)
    student = actor("http://127.0.0.1:9", model="costly", tokenizer="")
    teacher = TeacherConfig(**student.model_dump(include={"provider", "base_url", "model", "timeout_s"}))
    assert isinstance(models.open(student), Gateway)
    assert isinstance(models.open(teacher), Gateway) and models.open(teacher) is not models.open(student)


def test_without_a_log_nothing_passes_a_cap(tmp_path: Path) -> None:
    costly = actor("http://127.0.0.1:9", model="costly", tokenizer="")
    with pytest.raises(ConfigError, match="charges no budget"):
        OpenModels(held(tmp_path, 1), MemoryArtifacts()).open(costly)
    assert not isinstance(OpenModels(held(tmp_path), MemoryArtifacts()).open(costly), Gateway)
    near = actor("http://127.0.0.1:9", model="own", tokenizer="")
    assert not isinstance(OpenModels(held(tmp_path, 1), MemoryArtifacts()).open(near), Gateway)


def test_who_costs_money() -> None:
    router = RouterSettings()
    assert vendor_billing(actor("https://api.openai.com", model="gpt-4o"), router) == "openai"
    assert vendor_billing(actor("http://127.0.0.1:9", model="gpt-4o"), router) == ""
    assert vendor_billing(TeacherConfig(provider="tiny"), router) == ""


def test_prices_are_named_by_models_with_dots_in_their_names(tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text('[router.caps]\nday = 20\n[router.prices."openai/gpt-9.5"]\ninput = 0.5\noutput = 2\n')
    found = load(
        profile, {"router.prices.openai/gpt-9.5.output": "3", "router.prices.a/b.batch": "0.5"} | OWN, {}
    ).router
    assert (found.prices["openai/gpt-9.5"].input, found.prices["openai/gpt-9.5"].output) == (0.5, 3)
    assert (found.caps.day, found.prices["a/b"].batch) == (20, 0.5)
    with pytest.raises(ConfigError, match=r"no setting 'router.prices.openai/gpt-9.5.prize'"):
        load(profile, {"router.prices.openai/gpt-9.5.prize": "3"}, {})
    with pytest.raises(ConfigError, match=r"router.prices.openai/gpt-9.5.input = '-1' .* is not valid"):
        load(profile, {"router.prices.openai/gpt-9.5.input": "-1"}, {})


OWN = {"router.prices.a/b.input": "1", "router.prices.a/b.output": "1"}
