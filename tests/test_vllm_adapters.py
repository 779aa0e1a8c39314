"""Adapters of a vLLM server, loaded while it runs: against a stand-in that speaks the documented wire format."""

import asyncio
import copy
import math
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import torch

from agent0.assembly.routing.server_probes import probe_openai
from agent0.config.loading import load
from agent0.errors import DependencyError, OperationError, TransientError
from agent0.events.values import Artifact
from agent0.infra.engine.adapter import Adapter, lora_settings, pack
from agent0.infra.engine.chat_template import chat_of
from agent0.infra.engine.inference import Engine
from agent0.infra.models import vllm_adapters
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.infra.models.transformers import BASE
from agent0.infra.models.weights_probe import COPY_NATS, GREEDY, PROBED_TURNS, GreedyText, WeightsReading
from tests.adapters import adapter, tensors
from tests.conformance_model import ask, essence
from tests.memory import MemoryArtifacts
from tests.openai_server import Drawn, OpenAIStandIn, actor, serving
from tests.patience import until


@pytest.fixture
def server() -> Iterator[OpenAIStandIn]:
    with serving() as there:
        there.updating = True
        yield there


@pytest_asyncio.fixture
async def model(server: OpenAIStandIn, tmp_path: Path) -> AsyncIterator[OpenAIServer]:
    held = OpenAIServer(actor(server.url), MemoryArtifacts(), shared=tmp_path / "adapters")
    yield held
    await held.close()


def stored(model: OpenAIServer, data: bytes) -> Artifact:
    assert model._artifacts
    return model._artifacts.put(data)


def trained(model: OpenAIServer, seed: int = 0) -> Artifact:
    return stored(model, adapter(BASE, seed=seed))


def calls(server: OpenAIStandIn, path: str) -> list[dict[str, Any]]:
    return [body for asked, body in server.asked if asked == f"/v1/{path}"]


async def test_an_adapter_is_loaded_once_and_answers_to_its_name(model: OpenAIServer, server: OpenAIStandIn) -> None:
    one = trained(model)
    base, *turns = [await model.generate(replace(ask(), adapter=which)) for which in (None, one, one, None)]
    [loaded] = calls(server, "load_lora_adapter")
    assert {path.name for path in Path(loaded["lora_path"]).iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
    }
    assert loaded["lora_name"] == f"agent0-{one.sha256}"
    asked = [body["model"] for body in calls(server, "completions")][-3:]
    assert asked == [loaded["lora_name"]] * 2 + ["student"]
    assert turns[0].logprobs == turns[1].logprobs != base.logprobs == turns[2].logprobs
    assert {turn.model for turn in turns} == {"openai/student"} and turns[0].capture == "tokens"


async def test_calls_at_once_load_it_once(model: OpenAIServer, server: OpenAIStandIn) -> None:
    one = trained(model)
    await asyncio.gather(*(model.generate(replace(ask(seed=seed), adapter=one)) for seed in range(6)))
    assert len(calls(server, "load_lora_adapter")) == 1


async def test_a_server_that_says_it_has_it_and_answers_as_the_base_is_found_out(
    model: OpenAIServer, server: OpenAIStandIn
) -> None:
    server.deaf = True
    with pytest.raises(DependencyError, match="answers exactly as student"):
        await model.generate(replace(ask(), adapter=trained(model)))


async def test_one_that_answers_with_another_adapter_is_found_out(model: OpenAIServer, server: OpenAIStandIn) -> None:
    first, second = trained(model), trained(model, 1)
    await model.generate(replace(ask(), adapter=first))
    digest = server.adapters[f"agent0-{first.sha256}"][1]
    answer = server.answer

    def stale(method: str, path: str, body: dict[str, Any], key: str) -> tuple[int, Any]:
        found = answer(method, path, body, key)
        server.adapters = {name: (path, digest) for name, (path, _) in server.adapters.items()}
        return found

    server.answer = stale  # type: ignore[method-assign]
    with pytest.raises(DependencyError, match=f"answers exactly as agent0-{first.sha256}"):
        await model.generate(replace(ask(), adapter=second))


async def test_an_answer_in_another_name_is_no_answer(model: OpenAIServer, server: OpenAIStandIn) -> None:
    """Neither that of another adapter, nor the base's, nor where the base was asked; who says nothing is believed."""
    one, answer, wrong = trained(model), server.answer, dict[str, str]()
    await model.generate(replace(ask(), adapter=one))

    def renamed(method: str, path: str, body: dict[str, Any], key: str) -> tuple[int, Any]:
        status, found = answer(method, path, body, key)
        parts = found if isinstance(found, list) else []
        return status, [part | wrong if "model" in part else part for part in parts] or found

    server.answer = renamed  # type: ignore[method-assign]
    for name, which in (("student", one), ("agent0-other", one), ("agent0-other", None)):
        wrong["model"] = name
        with pytest.raises(TransientError, match=f"answered as {name}"):
            await model.generate(replace(ask(), adapter=which))
    wrong["model"] = ""
    assert (await model.generate(replace(ask(), adapter=one))).token_ids


async def test_the_look_after_an_answer_waits_for_no_generation(server: OpenAIStandIn, tmp_path: Path) -> None:
    model = OpenAIServer(actor(server.url, parallel=1), MemoryArtifacts(), shared=tmp_path / "adapters")
    await model.generate(ask())
    asked = len(calls(server, "completions"))
    server.faults[:] = ["hang"]
    waiting = asyncio.create_task(model.generate(ask()))
    await until(lambda: len(calls(server, "completions")) > asked, "the call that hangs")
    assert list(await asyncio.wait_for(model.models(), 120)) == ["student"] and not waiting.done()
    server.hung.set()
    await waiting
    await model.close()


async def test_one_that_is_lost_while_it_writes_is_found_out(model: OpenAIServer, server: OpenAIStandIn) -> None:
    one, answer = trained(model), server.answer
    await model.generate(replace(ask(), adapter=one))

    def losing(method: str, path: str, body: dict[str, Any], key: str) -> tuple[int, Any]:
        found = answer(method, path, body, key)
        if path == "/v1/completions":
            server.adapters.clear()
        return found

    server.answer = losing  # type: ignore[method-assign]
    with pytest.raises(TransientError, match=f"lost adapter {one.sha256[:12]}"):
        await model.generate(replace(ask(), adapter=one))
    server.answer = answer  # type: ignore[method-assign]
    assert (await model.generate(replace(ask(), adapter=one))).token_ids


def shift(server: OpenAIStandIn, nats: float) -> None:
    """Other weights, whose tokens are so much less likely."""
    draw = server.draw

    def other(prompt: list[int], seed: int, most: int, by: str = "", heat: float = 1.0) -> Drawn:
        drawn = draw(prompt, seed, most, by, heat)
        return replace(drawn, logprobs=[one - nats for one in drawn.logprobs])

    server.draw = other  # type: ignore[method-assign]


async def test_other_weights_under_the_same_name_are_found_out(model: OpenAIServer, server: OpenAIStandIn) -> None:
    """At the next adapter: on a server that was started again, and on a copy that is none."""
    await model.generate(replace(ask(), adapter=trained(model)))
    shift(server, 2.5)
    twin = OpenAIServer(actor(server.url), model._artifacts, shared=model._shared, weights=model._weights)
    for asked in (model, twin):
        server.adapters.clear()
        with pytest.raises(DependencyError, match="weights of before"):
            await asked.generate(replace(ask(), adapter=trained(model, 1)))
    await twin.close()


@pytest.mark.parametrize("trains", [True, False])
async def test_a_swap_between_the_start_and_the_first_turn_is_found_out(
    model: OpenAIServer, server: OpenAIStandIn, trains: bool
) -> None:
    """By what is opened after the start's check, which is another object; the next start begins with what is there."""
    start = OpenAIServer(actor(server.url), model._artifacts, shared=model._shared)
    await start.check(8 if trains else 0)
    shift(server, 0.05)
    for which in (trained(model), None):
        with pytest.raises(DependencyError, match="weights of before"):
            await model.generate(replace(ask(), adapter=which))
    await start.check(8 if trains else 0)
    await start.close()
    later = OpenAIServer(actor(server.url), model._artifacts, shared=model._shared)
    assert (await later.generate(ask())).text
    await later.close()


async def test_turns_of_the_base_are_of_the_weights_of_the_start(model: OpenAIServer, server: OpenAIStandIn) -> None:
    """They are read again after so many turns, and behind each failure."""
    await model.generate(ask())
    shift(server, 0.05)
    for _ in range(PROBED_TURNS - 1):
        await model.generate(ask())
    with pytest.raises(DependencyError, match="weights of before"):
        await model.generate(ask())
    shift(server, -0.05)
    await model.generate(ask())
    server.faults[:] = ["gone"]
    with pytest.raises(OperationError):
        await model.generate(ask())
    shift(server, 0.05)
    with pytest.raises(DependencyError, match="weights of before"):
        await model.generate(ask())


def test_rounding_is_no_swap() -> None:
    first = GreedyText((1, 2, 3, 4), (-0.1, -0.2, -0.3, -0.4), (0.9, 0.9, 0.1, 0.9))
    behind_a_tie = GreedyText((1, 2, 5, 6), (-0.1, -0.2, -0.3, -5.0))
    other_word = GreedyText((1, 5, 3, 4), first.logprobs)
    shifted = [GreedyText(first.ids, tuple(one - nats for one in first.logprobs)) for nats in (0.015, 0.05, 0.1)]
    quiet, noisy = WeightsReading([first, first]), WeightsReading([first, shifted[0]])
    assert not any(quiet.differs([text]) for text in (first, behind_a_tie, shifted[0]))
    assert all(quiet.differs([text]) for text in (other_word, shifted[1]))
    assert not quiet.differs([shifted[2], first]), "one of several is enough"
    assert not noisy.differs([shifted[1]]) and noisy.differs([shifted[2]]), "its own noise is the scale"
    assert not quiet.differs([shifted[2]], COPY_NATS), "a copy may be on another card"


def test_a_twentieth_of_noise_in_the_weights_is_seen_and_another_precision_is_not() -> None:
    """Of the built-in model, computed for real."""
    engine = Engine(str(BASE))
    exact = greedy(engine._model)
    assert not WeightsReading([exact]).differs([greedy(copy.deepcopy(engine._model).bfloat16().float())])
    for seed in range(2):
        torch.manual_seed(seed)
        noisy = copy.deepcopy(engine._model)
        for matrix in noisy.parameters():
            matrix.data += 0.05 * matrix.std() * torch.randn_like(matrix)
        assert WeightsReading([exact]).differs([greedy(noisy)])


def greedy(model: torch.nn.Module) -> GreedyText:
    ids = torch.tensor([chat_of(BASE).prompt(GREEDY.turns, ())])
    start, logprobs, margins = ids.shape[1], list[float](), list[float]()
    with torch.inference_mode():
        for _ in range(GREEDY.sampling.max_tokens):
            likeliest = model(ids).logits[0, -1].log_softmax(-1).topk(2)
            first, second = likeliest.values.tolist()
            logprobs.append(first)
            margins.append(math.exp(first) - math.exp(second))
            ids = torch.cat([ids, likeliest.indices[None, :1]], 1)
    return GreedyText(tuple(ids[0, start:].tolist()), tuple(logprobs), tuple(margins))


async def test_an_adapter_that_changes_nothing_may_answer_as_the_base(
    model: OpenAIServer, server: OpenAIStandIn
) -> None:
    server.deaf = True
    zero = {name: one * ("lora_A" in name) for name, one in tensors(BASE).items()}
    fresh = stored(model, pack(Adapter(lora_settings(8, 16), zero, {})))
    assert (await model.generate(replace(ask(), adapter=fresh))).text


async def test_a_server_that_takes_none_is_waited_for_with_the_words_that_start_it(
    model: OpenAIServer, server: OpenAIStandIn
) -> None:
    server.updating = False
    one = trained(model)
    with pytest.raises(DependencyError, match=f"adapter {one.sha256[:12]}") as caught:
        await model.generate(replace(ask(), adapter=one))
    for word in ("VLLM_ALLOW_RUNTIME_LORA_UPDATING=1", "--enable-lora", "--max-lora-rank 8"):
        assert word in caught.value.fix
    server.updating = True
    assert (await model.generate(replace(ask(), adapter=one))).text


async def test_a_server_that_was_started_again_gets_them_again(model: OpenAIServer, server: OpenAIStandIn) -> None:
    one = trained(model)
    before = await model.generate(replace(ask(), adapter=one))
    server.adapters.clear()
    assert essence(await model.generate(replace(ask(), adapter=one))) == essence(before)
    assert len(calls(server, "load_lora_adapter")) == 2


async def test_files_that_it_may_read_again_are_there(
    model: OpenAIServer, server: OpenAIStandIn, tmp_path: Path
) -> None:
    """It ends where it is to read an adapter anew whose folder is gone: of another run, or deleted meanwhile."""
    one = trained(model)
    other = OpenAIServer(actor(server.url), model._artifacts, shared=tmp_path / "other")
    await other.generate(replace(ask(), adapter=one))
    await other.close()
    await model.generate(replace(ask(), adapter=one))
    [(name, (path, _))] = server.adapters.items()
    assert path == str(tmp_path / "adapters" / one.sha256) and name.endswith(one.sha256)
    shutil.rmtree(path)
    await model.generate(replace(ask(), adapter=one))
    assert len(list(Path(path).iterdir())) == 2


async def test_a_start_tries_an_adapter_of_the_rank_that_is_trained(server: OpenAIStandIn, tmp_path: Path) -> None:
    """And leaves nothing behind; a profile that trains none, or not here, loads none."""
    student = {f"run.student.{key}": str(value) for key, value in actor(server.url).model_dump().items() if key in KEYS}
    pairs = {"home": str(tmp_path), "nats.url": "", "run.evaluation.forced_tool": "false"} | student
    held = load("tiny", pairs | {"run.training.student.rank": "12"}, {})
    assert "student at" in await probe_openai(held.run.student, held)
    [loaded], [left] = calls(server, "load_lora_adapter"), calls(server, "unload_lora_adapter")
    assert loaded["lora_name"] == left["lora_name"] == "agent0-trial" and not server.adapters
    assert server.ranks == [12] and not list((tmp_path / "cache" / "adapters").iterdir())
    for wrong, why in (({"updating": False}, "did not load"), ({"deaf": True}, "answers exactly as student")):
        server.__dict__.update({"updating": True, "deaf": False} | wrong)
        with pytest.raises(DependencyError, match="adapter of rank 12 on its server") as caught:
            await probe_openai(held.run.student, held)
        assert why in caught.value.why and "--max-lora-rank 12" in caught.value.fix
    other = load("tiny", pairs | {"run.training.student.objective": "none"}, {})
    assert "student at" in await probe_openai(other.run.student, other)


KEYS = ("provider", "base_url", "tokenizer", "max_tokens")


async def test_those_used_longest_ago_leave(
    model: OpenAIServer, server: OpenAIStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_adapters, "KEPT", 2)
    held = [trained(model, seed) for seed in range(3)]
    for n in (0, 1, 0, 2):
        await model.generate(replace(ask(), adapter=held[n]))
    assert set(server.adapters) == {f"agent0-{held[n].sha256}" for n in (0, 2)}


async def test_its_adapters_are_no_models_to_choose_from(
    model: OpenAIServer, server: OpenAIStandIn, tmp_path: Path
) -> None:
    await model.generate(replace(ask(), adapter=trained(model)))
    again = OpenAIServer(actor(server.url), MemoryArtifacts(), shared=tmp_path / "adapters")
    assert (await again.profile()).model == "student"
    await again.close()


async def test_an_adapter_of_another_base_never_gets_there(model: OpenAIServer, server: OpenAIStandIn) -> None:
    other = stored(model, pack(Adapter(lora_settings(8, 16), tensors(BASE), {"base": "0" * 64})))
    with pytest.raises(OperationError, match="another base"):
        await model.generate(replace(ask(), adapter=other))
    assert not calls(server, "load_lora_adapter")
