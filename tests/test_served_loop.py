"""The built-in model behind a real llama.cpp server that its run owns: a whole run over HTTP, the new adapter swapped
in, and whatever is killed is started again."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import torch

from agent0.assembly.runtime.model_ports import OpenModels, OpenTrainers
from agent0.assembly.validate.run_config import check_names
from agent0.config.loading import load
from agent0.errors import ConfigError, DependencyError, OperationError
from agent0.events.base import Recorded, sha256
from agent0.events.checkpoints import CheckpointEvaluated, CheckpointTrained
from agent0.events.tasks import TaskAttempted
from agent0.events.values import Artifact
from agent0.infra.engine.adapter import Adapter, lora_settings, pack
from agent0.infra.engine.inference import Engine
from agent0.infra.engine.llama_process import LlamaOptions, start
from agent0.infra.models import llama_cpp
from agent0.infra.models.llama_cpp import LlamaCpp
from agent0.infra.models.openai.several import OpenAIServers, opened
from agent0.infra.models.transformers import BASE
from agent0.infra.weights.gguf import write_adapter, write_base
from agent0.infra.weights.merge import read_lora
from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.settings import ActorConfig, RunConfig, Settings, StudentConfig
from agent0.training.objectives.policy_gradient import token_logprobs
from tests.adapters import adapter, tensors
from tests.conformance_model import ask, essence
from tests.llama_server import MISSING, serving
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.patience import until
from tests.play import play
from tests.sandbox.processes import descendants
from tests.terminal import agent0 as call
from tests.world import ports, small, started

pytestmark = [
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),  # peft's, 2026-11
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]
STUDENT = {"provider": "llamacpp", "max_turns": 2, "max_tokens": 64, "num_ctx": 1024, "parallel": 8}


@pytest_asyncio.fixture
async def model(tmp_path: Path) -> AsyncIterator[LlamaCpp]:
    actor = StudentConfig(**STUDENT)
    held = LlamaCpp(BASE, MemoryArtifacts(), actor, cache=tmp_path, threads=1)
    yield held
    await held.close()


@lru_cache(maxsize=1)
def reference() -> Engine:
    return Engine(str(BASE), through=True)


def computed(written: Generation, data: bytes | None) -> list[float]:
    """What training computes for the ids of ``written``, with the adapter ``data`` or without."""
    engine, name = reference(), sha256(data) if data else ""
    if data and not engine.has_adapter(name):
        engine.load_adapter(name, data)
    ids = torch.tensor([[*written.prompt_ids, *written.token_ids]])
    with torch.inference_mode(), engine._using(name):
        found = token_logprobs(engine._model(ids).logits, ids)[0, len(written.prompt_ids) :]
    return [float(one) for one in found]


class Heard:
    """The models of a run; what they were asked and wrote is kept."""

    def __init__(self, inner: OpenModels) -> None:
        self._inner, self.turns = inner, list[tuple[GenerateRequest, Generation]]()

    def open(self, actor: ActorConfig) -> Any:
        model = self._inner.open(actor)
        return HeardModel(model, self) if actor.provider == "llamacpp" else model


class HeardModel:
    def __init__(self, inner: Model, heard: Heard) -> None:
        self._inner, self._heard, self.name = inner, heard, inner.name

    async def generate(self, request: GenerateRequest) -> Generation:
        written = await self._inner.generate(request)
        self._heard.turns.append((request, written))
        return written


def played(home: Path) -> tuple[list[Recorded], Heard, MemoryArtifacts]:
    """A whole run of four tasks: rollouts over the wire, one training, the new adapter evaluated."""
    settings, artifacts = Settings(home=home), MemoryArtifacts()
    models, trainers = OpenModels(settings, artifacts), OpenTrainers(settings, artifacts)
    heard = Heard(models)
    recipe = {"minibatch": 8, "replay_steps": 2, "objective": "rloo"}
    config = small(
        iterations=1,
        tasks=4,
        attempts=4,
        student=STUDENT,
        training={"student": recipe},
        evaluation={"validation": 3, "test": 3},
    )

    async def work() -> list[Recorded]:
        boxes = {"sandbox": TrustingSandbox(), "verifier_sandbox": TrustingSandbox()}
        own = {"artifacts": artifacts, "models": heard, "trainers": trainers, **boxes}
        try:
            return await play(started(config), ports() | own)
        finally:
            await models.close()
            await trainers.close()

    return asyncio.run(work()), heard, artifacts


@pytest.mark.slow  # part of make crash
def test_a_whole_run_goes_through_the_server_and_the_new_adapter_answers(tmp_path: Path) -> None:
    told, heard, artifacts = played(tmp_path)
    assert told[-1].type == "RunFinished"
    attempts = [one.event for one in told if isinstance(one.event, TaskAttempted)]
    assert len(attempts) >= 4
    assert {(one.capture, one.model) for one in attempts} == {("tokens", "llama.cpp/base")}
    trained = next(one.event for one in told if isinstance(one.event, CheckpointTrained) and one.event.adapter)
    assert trained.adapter and trained.samples and trained.metrics["ratio"] == pytest.approx(1, abs=0.2)
    evaluated = [one.event for one in told if isinstance(one.event, CheckpointEvaluated)]
    assert trained.checkpoint in {one.checkpoint for one in evaluated}
    data = artifacts.get(trained.adapter)
    for wanted, own, other in ((None, None, data), (trained.adapter, data, None)):
        turns = [one for asked, one in heard.turns if asked.adapter == wanted and len(one.token_ids) > 3]
        assert turns
        for written in turns[:4]:
            assert written.logprobs == pytest.approx(computed(written, own), abs=2e-3)
        assert any(written.logprobs != pytest.approx(computed(written, other), abs=2e-3) for written in turns[:4])
    files = {path.name for path in (tmp_path / "cache" / "gguf").glob("*/*.gguf")}
    assert files == {"base.gguf", f"{trained.adapter.sha256}.gguf"}


@pytest.mark.slow  # part of make crash
@pytest.mark.filterwarnings("ignore:coroutine .connect_tcp:RuntimeWarning")  # anyio's, of a connection that was refused
async def test_two_servers_write_by_the_named_adapter_and_one_is_killed(tmp_path: Path) -> None:
    store, data, (base, lora) = MemoryArtifacts(), adapter(BASE), (tmp_path / "base.gguf", tmp_path / "adapter.gguf")
    write_base(BASE, base)
    write_adapter(read_lora(data), BASE, lora)
    trained = store.put(data)
    with serving(base, lora) as first, ExitStack() as stack:
        urls = ",".join(f"{url}/v1" for url in (first, stack.enter_context(serving(base, lora))))
        model = opened(StudentConfig(provider="openai", base_url=urls, tokenizer=str(BASE)), store, shared=None)
        assert isinstance(model, OpenAIServers)
        calls = [replace(ask(seed=n, max_tokens=96), adapter=trained if n % 2 else None) for n in range(160)]
        tasks = [asyncio.create_task(model.generate(request)) for request in calls]
        await until(lambda: sum(task.done() for task in tasks) >= 4, "the first answers")
        await asyncio.to_thread(stack.close)
        turns = await asyncio.gather(*tasks)
        failed = [member.breaker.failed for member in model._members]
        await model.close()
    gc.collect()
    assert failed[0] == 0 < failed[1] and len(turns) == 160
    for request, written in list(zip(calls, turns, strict=True))[::9]:
        own = data if request.adapter else None
        assert written.logprobs == pytest.approx(computed(written, own), abs=2e-3)


async def test_a_server_that_was_killed_is_started_again(model: LlamaCpp) -> None:
    first = await model.generate(ask())
    pid = model.pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    await until(lambda: model.pid is None, "the end of the server")
    again = await model.generate(ask())
    assert essence(again) == essence(first) and model.pid not in (None, pid)


@pytest.mark.slow  # part of make crash
async def test_calls_under_way_end_before_another_adapter_is_loaded(model: LlamaCpp) -> None:
    """Those that need no new one wait too, and every turn is by the adapter that it was asked of."""
    store, data = model._artifacts, adapter(BASE)
    trained = store.put(data)
    before = asyncio.gather(*(model.generate(ask(seed=seed)) for seed in range(6)))
    await until(lambda: model._calls, "the first call")
    first = model.pid
    after = await asyncio.gather(*(model.generate(replace(ask(seed=seed), adapter=trained)) for seed in range(3)))
    assert first and model.pid != first
    for written, own in [*((one, None) for one in await before), *((one, data) for one in after)]:
        assert written.logprobs == pytest.approx(computed(written, own), abs=2e-3)


async def test_a_process_keeps_the_adapters_that_were_used_last(
    model: LlamaCpp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_cpp, "LOADED", 2)
    trained: list[Artifact] = [model._artifacts.put(adapter(BASE, seed=seed)) for seed in range(3)]
    for one in (trained[0], trained[1], trained[0], trained[2]):
        await model.generate(replace(ask(), adapter=one))
    assert list(model._adapters) == [trained[0].sha256, trained[2].sha256]


async def test_a_model_that_rests_has_no_process_and_goes_on(model: LlamaCpp) -> None:
    first = await model.generate(ask())
    await model.rest()
    assert model.pid is None
    assert essence(await model.generate(ask())) == essence(first)


async def test_an_adapter_of_another_base_is_refused_and_the_server_goes_on(model: LlamaCpp) -> None:
    other = model._artifacts.put(pack(Adapter(lora_settings(8, 16), tensors(BASE), {"base": "0" * 64})))
    first, pid = await model.generate(ask()), model.pid
    with pytest.raises(OperationError, match="another base"):
        await model.generate(replace(ask(), adapter=other))
    assert essence(await model.generate(ask())) == essence(first) and model.pid == pid


async def test_the_server_asks_for_a_key_and_a_file_that_is_no_model_is_named(model: LlamaCpp, tmp_path: Path) -> None:
    import httpx

    await model.generate(ask())
    assert model._process
    async with httpx.AsyncClient(base_url=model._process.url) as stranger:
        assert (await stranger.post("/completion", json={"prompt": [1]})).status_code == 401
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model")
    with pytest.raises(DependencyError, match=r"broken\.gguf"):
        await start(LlamaOptions(str(broken)), tmp_path / "said")


async def test_the_server_ends_with_its_run_however_that_ends(model: LlamaCpp) -> None:
    await model.generate(ask())
    base = next(Path(model._cache).glob("*/base.gguf"))
    code = (
        "import asyncio, sys; from pathlib import Path\n"
        "from agent0.infra.engine.llama_process import LlamaOptions, start\n"
        "async def work():\n"
        f"    process = await start(LlamaOptions({str(base)!r}), Path({str(base.parent / 'said')!r}))\n"
        "    print(process.pid, flush=True)\n"
        "    await asyncio.sleep(3600)\n"
        "asyncio.run(work())\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        pid = int(run.stdout.readline())
        run.kill()
    await until(lambda: not alive(pid), "the end of the server")


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_the_profile_is_whole_and_an_adapter_of_all_weights_is_refused() -> None:
    plan: RunConfig = load("llamacpp", {}, {}).run
    check_names(plan)
    recipe = plan.training.student.model_copy(update={"rank": 0})
    training = plan.training.model_copy(update={"student": recipe})
    with pytest.raises(ConfigError, match="rank = 0 does not fit provider llamacpp"):
        check_names(plan.model_copy(update={"training": training}))
    student = plan.student.model_copy(update={"top_p": 0.9})
    with pytest.raises(ConfigError, match="temperature 1 and top_p 1"):
        check_names(plan.model_copy(update={"student": student}))


@pytest.mark.slow  # part of make crash
def test_a_run_that_was_killed_with_its_server_goes_on_and_loses_nothing(tmp_path: Path) -> None:
    sizes = ("--iterations", "1", "--tasks", "12", "--attempts", "4", "--set", "run.curriculum.embedder=ngram")
    held = ("--set", "run.evaluation.validation=8", "--set", "run.evaluation.test=8")
    command = [sys.executable, "-m", "agent0", "run", "start", "--profile", "llamacpp", *sizes, *held]
    home = {**os.environ, "AGENT0_HOME": str(tmp_path)}
    with subprocess.Popen(command, env=home, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as run:
        assert run.stderr
        assert any(line.startswith("untrained") for line in run.stderr), "it never came so far"
        for pid in descendants(run.pid):
            if b"llama_process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        assert any("iteration 0 of 0-0" in line for line in run.stderr), "it did not go on without its server"
        run.kill()
    said = call("run", "resume", "LAST", "--json", home=tmp_path)
    assert (said.code, said.json["status"], said.json["failures"]) == (0, "finished", [])
    asked = call("events", "stats", "--json", home=tmp_path)
    counts = {row["type"]: row["events"] for row in asked.json}
    assert counts["AttemptRequested"] == counts["TaskAttempted"] == counts["ResultVerified"] > 0
