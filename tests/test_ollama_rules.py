"""What a client of Ollama must get right, rule by rule, against a stand-in that has the server's own defaults: it
thinks unless told not to, keeps a runner by base, takes the window that it can, and rewrites what it is given."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from agent0.assembly.routing.billing import actors_of, check_routing, vendor_billing
from agent0.assembly.validate.model_checks import models as model_checks
from agent0.config.loading import load
from agent0.errors import DependencyError, OperationError, RefusedError, UnknownPriceError
from agent0.infra.gateway.prices import Prices
from agent0.infra.models.ollama import is_cloud
from agent0.infra.models.ollama.facts import ModelFacts, look, read_facts, think
from agent0.infra.models.ollama.probe import probe, try_chat
from agent0.infra.models.ollama.provider import Ollama
from agent0.ports.models import GenerateRequest, Generation, Sampling
from agent0.settings import ActorConfig, RouterSettings, StudentConfig
from tests.conformance_model import TOOL, ask
from tests.memory import MemoryArtifacts
from tests.ollama_server import OllamaServer
from tests.ollama_wire import serving

MODEL = "qwen2.5:7b"


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with serving(MemoryArtifacts()) as ollama:
        yield ollama


def thinking(server: OllamaServer) -> None:
    server.capabilities, server.thought = ("completion", "thinking"), "6*7, maybe \\boxed{41}"


async def written(server: OllamaServer, request: GenerateRequest | None = None, **settings: Any) -> Generation:
    given = {"provider": "ollama", "model": MODEL, "num_ctx": 4096} | settings
    model = Ollama(StudentConfig(**given), server.url)
    try:
        return await model.generate(request or ask())
    finally:
        await model.close()


async def test_it_thinks_only_where_it_is_told_to_and_a_thought_is_no_answer(server: OllamaServer) -> None:
    thinking(server)
    quiet = await written(server)
    assert server.asked[-1]["think"] is False and not quiet.thinking
    loud = await written(server, thinking="on")
    assert server.asked[-1]["think"] is True
    assert (loud.text, loud.thinking) == (quiet.text, server.thought)
    await written(server, thinking="high")
    assert server.asked[-1]["think"] == "high"


THINK: tuple[tuple[str, ModelFacts, bool | str], ...] = (
    ("", ModelFacts(), False),
    ("off", ModelFacts(), False),
    ("on", ModelFacts(), True),
    ("high", ModelFacts(), "high"),
    ("minimal", ModelFacts(("completion", "thinking")), "low"),
    ("off", ModelFacts(("completion",)), False),
    ("", ModelFacts(("completion", "thinking"), "gptoss"), "low"),
    ("on", ModelFacts(("completion", "thinking"), "gptoss"), "medium"),
    ("high", ModelFacts(("completion", "thinking"), "gpt-oss"), "high"),
)


@pytest.mark.parametrize(("setting", "facts", "expected"), THINK)
def test_what_it_is_told_of_thinking(setting: str, facts: ModelFacts, expected: bool | str) -> None:
    assert think(setting, facts, "m") == expected


@pytest.mark.parametrize(
    ("setting", "facts", "why"),
    [("on", ModelFacts(("completion",)), "does not think"), ("off", ModelFacts((), "gptoss"), "cannot but think")],
)
def test_what_a_model_cannot_is_refused_by_name(setting: str, facts: ModelFacts, why: str) -> None:
    with pytest.raises(OperationError, match=why):
        think(setting, facts, "m")


async def test_with_a_format_the_tokens_of_the_thought_are_counted_too(server: OllamaServer) -> None:
    """It is asked twice then, and counts the second answer alone."""
    thinking(server)
    held = replace(ask(), schema={"type": "object"})
    plain, thoughtful = await written(server, held), await written(server, held, thinking="on")
    assert thoughtful.usage.completion_tokens == plain.usage.completion_tokens + len(server.thought)


async def test_all_sampling_is_sent(server: OllamaServer) -> None:
    await written(server)
    options = server.asked[-1]["options"]
    assert (options["top_k"], options["min_p"], options["typical_p"]) == (0, 0.0, 1.0)
    assert (options["repeat_penalty"], options["presence_penalty"], options["frequency_penalty"]) == (1.0, 0.0, 0.0)
    assert {"temperature", "top_p", "seed", "num_predict", "num_ctx"} <= set(options) and "stop" not in options


async def test_stop_texts_of_a_request_leave_the_models_own_in_force(server: OllamaServer) -> None:
    server.shows = {"parameters": 'num_ctx    4096\nstop       "<|im_end|>"\nstop       "\\n\\nUser:"\nstop  bare'}
    await written(server, GenerateRequest(ask().turns, Sampling(stop=("```\n",))))
    assert server.asked[-1]["options"]["stop"] == ["<|im_end|>", "\n\nUser:", "bare", "```\n"]


async def test_stop_texts_end_no_thought(server: OllamaServer) -> None:
    thinking(server)
    request = GenerateRequest(ask().turns, Sampling(stop=("```\n",)))
    await written(server, request, thinking="on")
    assert "stop" not in server.asked[-1]["options"]
    await written(server, request)
    assert server.asked[-1]["options"]["stop"] == ["```\n"]


async def test_a_window_that_became_smaller_is_told(server: OllamaServer, caplog: pytest.LogCaptureFixture) -> None:
    server.trained_context = 2048
    with caplog.at_level(logging.WARNING):
        await written(server, num_ctx=8192)
    assert "context window is 2048 tokens, not the 8192 of num_ctx" in caplog.text
    actor = StudentConfig(provider="ollama", model=MODEL, num_ctx=8192)
    assert "2048" in await try_chat(actor, server.url)
    assert not await try_chat(actor.model_copy(update={"num_ctx": 2048}), server.url)


async def test_nothing_is_cut_in_silence(server: OllamaServer) -> None:
    await written(server)
    assert server.asked[-1]["truncate"] is False and server.asked[-1]["shift"] is False
    with pytest.raises(OperationError, match="does not fit into the window"):
        await written(server, ask("long " * 2000), num_ctx=1024)


async def test_a_model_that_is_loaded_again_and_again_is_told(
    server: OllamaServer, caplog: pytest.LogCaptureFixture
) -> None:
    """One runner a base: with another adapter or window it is started anew."""
    server.models = ("base:1", "adapted:1")
    server.based_on = dict.fromkeys(server.models, "a" * 64)
    pair = [Ollama(StudentConfig(provider="ollama", model=name, num_ctx=4096), server.url) for name in server.models]
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            for model in pair:
                await model.generate(ask())
    assert server.loads == 4 and "base:1" in caplog.text and "was loaded again (2 times so far)" in caplog.text
    caplog.clear()
    for _ in range(3):
        await pair[0].generate(ask())
    assert server.loads == 5 and caplog.text.count("loaded again") <= 1
    for model in pair:
        await model.close()


@pytest.mark.parametrize(
    ("student", "teacher", "told"),
    [
        (("base:1", 4096), ("base:1", 4096), False),
        (("base:1", 4096), ("base:1", 8192), True),
        (("base:1", 4096), ("adapted:1", 4096), True),
        (("base:1", 4096), ("other:1", 8192), False),
    ],
)
async def test_roles_that_share_a_base_are_told_before_a_run(
    server: OllamaServer, student: tuple[str, int], teacher: tuple[str, int], told: bool
) -> None:
    server.models, server.based_on = ("base:1", "adapted:1", "other:1"), {"base:1": "a" * 64, "adapted:1": "a" * 64}
    sets = {"models.ollama_url": server.url, "run.student.provider": "ollama", "run.teacher.provider": "ollama"}
    for role, (model, size) in (("student", student), ("teacher", teacher)):
        sets |= {f"run.{role}.model": model, f"run.{role}.num_ctx": str(size)}
    checks = await model_checks(load("ollama", sets, {}))
    assert not [check for check in checks if check.state == "fail"]
    warned = [check for check in checks if check.name == "ollama memory"]
    assert bool(warned) == told and all("loads anew at each change" in check.detail for check in warned)


async def test_both_roles_keep_a_model_as_long(server: OllamaServer) -> None:
    kept = set()
    for actor in (StudentConfig(), ActorConfig()):
        model = Ollama(actor.model_copy(update={"model": MODEL}), server.url)
        await model.generate(ask())
        await model.close()
        kept.add((server.asked[-1]["keep_alive"], server.asked[-1]["options"]["num_ctx"]))
    assert len(kept) == 1


NAMES: tuple[tuple[str, bool], ...] = (
    ("gpt-oss:120b-cloud", True),
    ("deepseek-v3.1:671b-cloud", True),
    ("glm-4.6:cloud", True),
    ("minimax:CLOUD", True),
    ("someone/model:1b-cloud", True),
    ("qwen2.5:7b", False),
    ("cloud", False),
    ("my-cloud", False),
    ("cloud:7b", False),
    ("point-cloud:latest", False),
    ("nebula:7b-clouds", False),
    ("", False),
)


@pytest.mark.parametrize(("name", "cloud"), NAMES)
def test_a_cloud_name_is_remote_everywhere(name: str, cloud: bool) -> None:
    assert is_cloud(name) == cloud
    actor = ActorConfig(provider="ollama", model=name)
    assert vendor_billing(actor, RouterSettings()) == ("ollama.com" if cloud else "")
    assert (Prices(RouterSettings()).local("ollama", 10, name) is None) == cloud


def test_an_unpriced_cloud_model_is_refused_under_a_cap() -> None:
    sets = {"run.student.model": "gpt-oss:120b-cloud", "router.caps.run": "1"}
    with pytest.raises(UnknownPriceError, match=r"ollama\.com/gpt-oss:120b-cloud"):
        check_routing(load("ollama", sets, {}))
    check_routing(load("ollama", sets | {"run.student.model": "gpt-oss:20b"}, {}))


@pytest.mark.parametrize(
    ("address", "vendor"),
    [
        ("https://ollama.com", "ollama.com"),
        ("http://8.8.8.8:11434", "8.8.8.8"),
        ("http://127.0.0.1:11435", ""),
        ("http://gpu-box:11434", ""),
        ("http://192.168.1.7:11434", ""),
    ],
)
def test_a_server_on_another_network_is_remote(address: str, vendor: str) -> None:
    settings = load("ollama", {"models.ollama_url": address, "router.caps.run": "1"}, {})
    assert vendor_billing(actors_of(settings)["student"], settings.router) == vendor
    if vendor:
        with pytest.raises(UnknownPriceError, match=vendor):
            check_routing(settings)
    else:
        check_routing(settings)


@pytest.mark.parametrize("shown", [{"remote_host": "https://ollama.com:443"}, {"remote_model": "gpt-oss:120b"}])
async def test_a_local_name_that_is_computed_elsewhere_is_asked_nothing(
    server: OllamaServer, shown: dict[str, Any]
) -> None:
    server.shows = shown
    with pytest.raises(RefusedError, match="not computed at"):
        await written(server)
    with pytest.raises(RefusedError, match="not computed at"):
        await try_chat(StudentConfig(provider="ollama", model=MODEL), server.url)
    assert not server.prompts
    paid = Ollama(StudentConfig(provider="ollama", model=MODEL, num_ctx=4096), server.url, free=False)
    assert (await paid.generate(ask())).counted["completion_tokens"]
    await paid.close()


async def test_no_tools_are_named_so_that_log_probabilities_come(server: OllamaServer) -> None:
    """It refuses them where a streamed request names tools; ours stand in the text."""
    found = await written(server, replace(ask(), tools=(TOOL,)))
    assert not server.asked[-1].get("tools") and found.capture == "logprobs" and found.logprobs


async def test_where_log_probabilities_are_refused_the_text_is_kept_and_it_is_told(
    server: OllamaServer, caplog: pytest.LogCaptureFixture
) -> None:
    def refuses(body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        return (400, {"error": "logprobs is not supported with tools + stream"}) if body.get("logprobs") else None

    server._refused = refuses  # type: ignore[method-assign]
    model = Ollama(StudentConfig(provider="ollama", model=MODEL, num_ctx=4096), server.url)
    with caplog.at_level(logging.WARNING):
        found = [await model.generate(ask(seed=n)) for n in range(2)]
    assert [(one.capture, one.logprobs) for one in found] == [("text", ())] * 2 and all(one.text for one in found)
    assert len(server.asked) == 3 and caplog.text.count("tells no log-probabilities") == 1
    await model.close()


@pytest.mark.parametrize("ask_it", [lambda s: written(s, model="nobody:1"), lambda s: probe(s.url, "nobody:1")])
async def test_a_missing_model_names_those_that_are_there(server: OllamaServer, ask_it: Callable[[Any], Any]) -> None:
    with pytest.raises(DependencyError) as raised:
        await ask_it(server)
    assert "It has: qwen2.5:3b, qwen2.5:7b." in raised.value.fix and "ollama pull nobody:1" in raised.value.fix


async def test_a_model_is_known_by_what_is_shown_not_by_a_files_digest(server: OllamaServer) -> None:
    server.based_on = {MODEL: "b" * 64}
    facts = await look(server.url, MODEL)
    assert (facts.base, facts.adapter) == ("b" * 64, "")
    made = {"modelfile": f"FROM /b/sha256-{'c' * 64}\nADAPTER /b/sha256-{'d' * 64}", "details": {"family": "qwen2"}}
    assert read_facts(made, "m") == ModelFacts(family="qwen2", base="c" * 64, adapter="d" * 64)
    assert read_facts({"details": {"parent_model": "base:1"}}, "m").base == "base:1"
    assert read_facts({}, "m") == ModelFacts(base="m")


@pytest.mark.parametrize("shown", [{"details": 5}, {"capabilities": 7}, {"details": {"family": None}}])
async def test_what_it_shows_may_be_anything(server: OllamaServer, shown: dict[str, Any]) -> None:
    server.shows = shown
    assert isinstance(await look(server.url, MODEL), ModelFacts)
    assert (await written(server)).text
    assert await look("http://127.0.0.1:9", MODEL) == ModelFacts()
