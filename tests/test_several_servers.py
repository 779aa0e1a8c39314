"""One model on several servers: calls are spread over them, one that dies loses nothing, and where they are is no part
of a run."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import ValidationError

from agent0.assembly.routing.billing import vendor_billing
from agent0.assembly.routing.server_probes import described
from agent0.assembly.runtime.execution import moved_servers
from agent0.config.loading import load
from agent0.errors import Agent0Error, ConfigError, DependencyError, ModelChangedError, OperationError, RefusedError
from agent0.events.base import record
from agent0.events.runs import RunResumed
from agent0.infra.models.openai import several
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.infra.models.openai.several import OpenAIServers
from agent0.infra.models.transformers import BASE
from agent0.run.lifecycle import evolve
from agent0.settings import RunConfig, StudentConfig
from agent0.settings.router import RouterSettings
from agent0.state.snapshot import from_text, to_text
from tests.adapters import adapter
from tests.conformance_model import ask, essence
from tests.memory import MemoryArtifacts
from tests.openai_server import MIDWAY, OpenAIStandIn, actor, serving
from tests.terminal import agent0
from tests.world import NOON, small, started


@pytest.fixture
def pair() -> Iterator[list[OpenAIStandIn]]:
    with ExitStack() as stack:
        yield [stack.enter_context(serving()) for _ in range(2)]


@pytest_asyncio.fixture
async def model(pair: list[OpenAIStandIn], tmp_path: Path) -> AsyncIterator[OpenAIServers]:
    servers = opened(*(server.url for server in pair), shared=tmp_path / "adapters")
    yield servers
    await servers.close()


def opened(*urls: str, shared: Path | None = None, **changes: Any) -> OpenAIServers:
    student = actor(urls[0], base_url=",".join(f"{url}/v1" for url in urls), **changes)
    servers = several.opened(student, MemoryArtifacts(), shared=shared)
    assert isinstance(servers, OpenAIServers)
    return servers


def turns(server: OpenAIStandIn) -> int:
    """How many turns it was asked for, the first question of all (``PROBE``) left out."""
    return sum(path == "/v1/completions" and body["max_tokens"] == 48 for path, body in server.asked)


async def alone(server: OpenAIStandIn, count: int) -> list[tuple[object, ...]]:
    """What one server writes to as many calls."""
    model = OpenAIServer(actor(server.url))
    written = [essence(await model.generate(ask(seed=seed))) for seed in range(count)]
    await model.close()
    return written


async def written(model: OpenAIServers, count: int) -> list[tuple[object, ...]]:
    return [essence(turn) for turn in await asyncio.gather(*(model.generate(ask(seed=n)) for n in range(count)))]


async def test_calls_are_spread_by_how_many_each_has(model: OpenAIServers, pair: list[OpenAIStandIn]) -> None:
    found = await written(model, 40)
    assert min(map(turns, pair)) >= 10 and sum(map(turns, pair)) == 40
    assert found == await alone(pair[0], 40)


@pytest.mark.parametrize("fault", ["closed", "down", *MIDWAY])
async def test_what_fails_on_one_is_written_by_the_other(fault: str, pair: list[OpenAIStandIn]) -> None:
    expected = await alone(pair[1], 12)
    model = opened(*(server.url for server in pair), silent_s=0.5 if fault == "silent" else 30)
    await model.check()
    pair[0].faults[:] = [fault] * 12
    assert await written(model, 12) == expected
    assert turns(pair[0]) >= 1 and turns(pair[1]) == 24
    await model.close()


async def test_one_that_died_is_left_alone_and_comes_back(
    pair: list[OpenAIStandIn], caplog: pytest.LogCaptureFixture
) -> None:
    """Both are said, once each."""
    with serving() as third:
        model = opened(pair[0].url, third.url)
        await written(model, 8)
        assert turns(third)
        third.faults[:] = ["closed"] * 1000  # what is connected, too
    dead = next(member for member in model._members if third.url in member.address)
    assert len(await written(model, 20)) == 20 and turns(pair[0]) >= 20
    tries = dead.breaker.failed
    assert tries == 1 and len(await written(model, 20)) == 20 and dead.breaker.failed == tries, "it was asked"
    dead.server, dead.breaker.until = OpenAIServer(actor(pair[1].url)), 0.0
    assert [record.getMessage() for record in caplog.records if dead.address in record.getMessage()] == caplog.messages
    assert len(caplog.messages) == 1 and f"{dead.address} fails, and its calls go to the others." in caplog.messages[0]
    assert len(await written(model, 20)) == 20 and turns(pair[1]) and not dead.breaker.failed
    assert caplog.messages[1:] == [f"{dead.address} answers again."]
    await model.close()


@pytest.mark.parametrize("renamed", [True, False])
async def test_one_that_comes_back_as_another_is_refused_by_name(renamed: bool, pair: list[OpenAIStandIn]) -> None:
    model = opened(*(server.url for server in pair), model="", tokenizer="")
    await model.check()
    pair[0].faults[:] = ["down"] * 40
    await written(model, 4)
    pair[0].faults.clear()
    pair[0].models, pair[0].level = ("other",) if renamed else ("student",), "tokens" if renamed else "logprobs"
    asked, model._members[0].breaker.until = len(pair[0].asked), 0.0
    assert len(await written(model, 8)) == 8
    assert not any(len(body["messages"]) > 1 for path, body in pair[0].asked[asked:] if "messages" in body)
    model._members[0].breaker.until = 0.0
    model._members[1].fail(inf, DependencyError("It"))
    with pytest.raises(ModelChangedError, match=pair[0].url) as refused:
        await model.generate(ask())
    assert ("other" if renamed else "logprobs") in refused.value.why
    pair[0].models, pair[0].level, model._members[0].breaker.until = ("student",), "tokens", 0.0
    assert (await model.generate(ask())).capture == "tokens" and model._members[0].joined
    await model.close()


async def test_where_all_died_the_call_waits_as_for_one(pair: list[OpenAIStandIn]) -> None:
    with ExitStack() as stack:
        urls = [stack.enter_context(serving()).url for _ in range(2)]
    model = opened(*urls)
    for _ in range(3):
        with pytest.raises(DependencyError):
            await model.generate(ask())
    with pytest.raises(DependencyError):
        await model.check()
    await model.close()


async def test_what_was_heard_is_not_written_again(pair: list[OpenAIStandIn]) -> None:
    model, heard = opened(*(server.url for server in pair)), list[str]()
    await model.check()
    for server in pair:
        server.faults[:] = ["broken"]
    with pytest.raises(Agent0Error):
        await model.generate(replace(ask(), listen=heard.append))
    assert heard and sorted(map(turns, pair)) == [0, 1]
    await model.close()


async def test_one_whose_tries_have_a_price_is_asked_once_a_call(pair: list[OpenAIStandIn]) -> None:
    both = ",".join(f"{server.url}/v1" for server in pair)
    model = several.opened(actor("", base_url=both), None, shared=None, patient=False)
    assert isinstance(model, OpenAIServers)
    await model.check()
    pair[0].faults[:] = ["down"]
    with pytest.raises(Agent0Error):
        await model.generate(ask())
    assert turns(pair[1]) == 0
    assert (await model.generate(ask())).token_ids and turns(pair[1]) == 1
    await model.close()


async def test_each_is_given_the_adapter(model: OpenAIServers, pair: list[OpenAIStandIn]) -> None:
    for server in pair:
        server.updating = True
    store = model._members[0].server._artifacts
    assert store and isinstance(store, MemoryArtifacts)
    trained = store.put(adapter(BASE))
    found = await asyncio.gather(*(model.generate(replace(ask(seed=n), adapter=trained)) for n in range(12)))
    assert all(list(server.adapters) == [f"agent0-{trained.sha256}"] for server in pair)
    assert all(turn.capture == "tokens" for turn in found)


async def test_servers_must_be_copies_and_one_may_be_away(pair: list[OpenAIStandIn]) -> None:
    model = opened(*(server.url for server in pair), model="")
    assert (await model.check()).model == "student"
    await model.close()
    with serving(models=("teacher",)) as other:
        model = opened(pair[0].url, other.url, model="")
        with pytest.raises(RefusedError, match="no copies"):
            await model.check()
        await model.close()
    model = opened(other.url, pair[0].url)
    profile = await model.check()
    assert profile.model == "student" and profile.away == (f"{other.url}/v1",)
    assert f"{other.url}/v1 is away: calls go to the others" in described(profile, actor(pair[0].url))
    await model.close()


def test_a_list_is_one_setting_and_only_of_servers_of_this_kind() -> None:
    urls = ["http://a:1/v1", "http://b:2/v1"]
    listed, text = StudentConfig(provider="openai", base_url=urls), ", ".join([*urls, urls[0]])  # type: ignore[arg-type]
    assert listed.addresses == StudentConfig(provider="openai", base_url=text).addresses == tuple(urls)
    with pytest.raises(ValidationError, match="only provider openai"):
        StudentConfig(provider="ollama", base_url=text)
    with pytest.raises(ConfigError, match="no address"):
        load("openai", {"run.student.base_url": "http://a:1,,b"}, {})
    far = StudentConfig(provider="openai", base_url="http://127.0.0.1:1,https://api.openai.com/v1")
    assert vendor_billing(far, RouterSettings()) == "openai"


def test_where_servers_are_is_no_part_of_what_a_run_is() -> None:
    here, there = (
        load("openai", {"run.student.base_url": url}, {}).run for url in ("http://a:1", "http://b:1,http://c:1")
    )
    assert here.to_record() == there.to_record() and "http" not in str(there.to_record()[0]["student"])
    assert RunConfig.recorded(there.to_record()[0], there.servers) == there
    judged = RunConfig.recorded({"verification": {"judge": {"provider": "openai", "base_url": "http://j"}}})
    assert judged.served_by({"judge": "http://k"}).servers == {"judge": "http://k"}


def test_a_run_that_goes_on_elsewhere_stays_the_same_run() -> None:
    state = evolve(None, started(small()))
    assert state
    event = RunResumed(servers={"student": "http://b:1,http://c:1"})
    moved = evolve(state, record(event, run="r1", time=NOON, id="moved").model_copy(update={"seq": 2}))
    assert moved and moved.config.student.addresses == ("http://b:1", "http://c:1")
    assert moved.digest == state.digest and moved.config_sha == state.config_sha
    assert from_text(to_text(moved), state.config).config == moved.config


def test_a_run_is_started_at_two_and_resumed_at_another(pair: list[OpenAIStandIn], tmp_path: Path) -> None:
    urls = [word for server in pair for word in ("--base-url", f"{server.url}/v1")]
    small_run = ("--iterations", "1", "--tasks", "1", "--attempts", "2", "--no-handlers", "--detach", "--json")
    begun = agent0("run", "start", *urls, "--model", "student", *small_run, home=tmp_path)
    assert begun.code == 0, begun.err
    run = begun.json["run"]
    moved = agent0("run", "resume", run, "--base-url", "http://127.0.0.1:1/v1", "--detach", "--json", home=tmp_path)
    assert moved.code == 0, moved.err
    lost = agent0("run", "resume", run, home=tmp_path)
    assert lost.code == 5 and "http://127.0.0.1:1" in lost.err and f"agent0 run resume {run} --base-url URL" in lost.err
    shown = agent0("run", "show", run, "--json", home=tmp_path).json
    assert {shown["config"][role]["base_url"] for role in ("student", "teacher")} == {"http://127.0.0.1:1/v1"}
    assert shown["config_sha"] == begun.json["config_sha"] and "servers" not in shown
    with pytest.raises(OperationError, match="cannot be asked"):
        settings = load("openai", {"run.student.base_url": "http://127.0.0.1:1"}, {})
        moved_servers(settings, {"run": "r1", "config": small().to_record()[0]})
