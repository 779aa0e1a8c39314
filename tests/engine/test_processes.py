"""Models and training in processes of their own."""

import asyncio
import gc
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import torch
from transformers import PreTrainedTokenizerFast

from agent0.errors import OperationError, TransientError
from agent0.events.values import Artifact, Trajectory, Turn
from agent0.infra.engine.adapter import unpack
from agent0.infra.engine.worker_process import Worker
from agent0.infra.models import transformers
from agent0.infra.models.transformers import Transformers, threads_of
from agent0.infra.tiny.tokenizer import CONTROL, MARKUP, make_tokenizer
from agent0.infra.training.launch.recipe import Recipe, schedule
from agent0.infra.training.lora_trainer import LoraTrainer
from agent0.ports.models import GenerateRequest, Model, Resting, Sampling
from agent0.ports.training import Sample, TrainJob
from agent0.rollout.trajectories import assemble
from tests.conformance_model import ModelConformance
from tests.engine.asking import user
from tests.memory import MemoryArtifacts

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own
MODULE = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    """With the official template of Qwen2.5, as a downloaded model has it."""
    made: PreTrainedTokenizerFast = make_tokenizer(0)
    made.chat_template = (Path(__file__).parents[1] / "data" / "templates" / "qwen2.5.jinja").read_text()
    return made


@pytest.fixture(scope="module")
def context() -> int:
    """That template says much."""
    return 2048


@MODULE
class TestTransformers(ModelConformance):
    """The conformance suite of the ``Model`` port."""

    @pytest.fixture(autouse=True)
    def _marks(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.control_ids = frozenset(tokenizer.convert_tokens_to_ids(list(CONTROL + MARKUP)))

    @pytest.fixture
    def model(self, request: pytest.FixtureRequest) -> Model:
        return request.getfixturevalue("shared")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(model: Transformers) -> Transformers:
    return model


@MODULE
@pytest.mark.slow  # part of make crash
async def test_a_killed_worker_is_started_again(model: Transformers) -> None:
    ask = GenerateRequest((user("What is 7*8?"),), Sampling(max_tokens=30, seed=3))
    first = await model.generate(ask)
    assert model.pid is not None
    os.kill(model.pid, signal.SIGSTOP)  # so that the call is surely in flight
    in_flight = asyncio.create_task(model.generate(ask))
    await asyncio.sleep(0.05)
    os.kill(model.pid, signal.SIGKILL)
    with pytest.raises(TransientError, match="ended in the middle"):
        await in_flight
    assert (await model.generate(ask)).token_ids == first.token_ids


async def sampled(model: Transformers, count: int, adapter: Artifact | None = None) -> list[Trajectory]:
    """Attempts of two turns with tool output between."""
    found = []
    for seed in range(count):
        ask = GenerateRequest((user(f"What is {seed}+2?"),), Sampling(max_tokens=6, seed=seed), adapter=adapter)
        one = await model.generate(ask)
        said = (*ask.turns, Turn(role="assistant", content=one.text, token_ids=one.token_ids))
        two = await model.generate(replace(ask, turns=(*said, Turn(role="tool", content="44"))))
        path, problem = assemble([one, two])
        assert path and not problem
        found.append(path)
    return found


SETTINGS = {"lr": 5e-3, "rank": 4, "alpha": 8, "minibatch": 3, "replay_steps": 2, "epochs": 2, "unknown": 1}


@MODULE
async def test_the_same_job_gives_the_same_adapter(
    model: Transformers, trainer: LoraTrainer, artifacts: MemoryArtifacts
) -> None:
    paths = await sampled(model, 7)
    samples = tuple(Sample(path, (-1.0) ** n, 0.3) for n, path in enumerate(paths))
    job = TrainJob(samples, samples[:4:2], None, 5, SETTINGS, {"run": "r1"})
    first = await trainer.train(job)
    assert unpack(artifacts.get(first.adapter)).metadata == {"run": "r1", "base": first.environment["base"]}
    assert first.metrics["steps"] == 2 * 3 + 2 and first.metrics["skipped"] == 0
    assert first.metrics["tokens"] == 2 * sum(sum(path.mask) for path in paths)
    assert 0.5 < first.metrics["ratio"] < 2 and 0 <= first.metrics["clip_share"] <= 1
    other = await trainer.train(replace(job, seed=6))
    following = await trainer.train(replace(job, parent=first.adapter))
    assert len({first.adapter, other.adapter, following.adapter}) == 3
    assert (await trainer.train(job)).adapter == first.adapter
    assert first.environment["threads"] == "1" and first.environment["torch"] == torch.__version__
    assert first.environment["forward"] == "function"


@MODULE
async def test_what_paid_becomes_likelier(model: Transformers, trainer: LoraTrainer) -> None:
    paths = await sampled(model, 6)
    job = TrainJob(
        tuple(Sample(path, 1.0 if n < 3 else -1.0, 5.0) for n, path in enumerate(paths)), (), None, 1, SETTINGS
    )
    trained = await trainer.train(replace(job, settings=SETTINGS | {"epochs": 6, "clip_low": 5.0}))
    again = await trainer.train(replace(job, parent=trained.adapter, settings=SETTINGS | {"lr": 1e-9, "epochs": 1}))
    assert again.metrics["loss"] < -0.1  # ratios above 1 where it paid, below 1 where it did not
    ask = GenerateRequest((user("What is 1+2?"),), Sampling(max_tokens=6, seed=1))
    base, adapted = await asyncio.gather(model.generate(ask), model.generate(replace(ask, adapter=trained.adapter)))
    assert base.logprobs != adapted.logprobs
    assert await _essence(model, ask) == (base.token_ids, base.prompt_ids)


async def _essence(model: Transformers, ask: GenerateRequest) -> tuple[Any, Any]:
    written = await model.generate(ask)
    return written.token_ids, written.prompt_ids


@MODULE
async def test_a_step_that_is_no_number_is_skipped(
    model: Transformers, trainer: LoraTrainer, artifacts: MemoryArtifacts
) -> None:
    paths = await sampled(model, 4)
    samples = (Sample(paths[0], float("nan")), *(Sample(path, 1.0) for path in paths[1:]))
    trained = await trainer.train(TrainJob(samples, (), None, 5, SETTINGS | {"minibatch": 1, "epochs": 1}))
    assert trained.metrics["skipped"] == 1 and trained.metrics["steps"] == 3
    weights = unpack(artifacts.get(trained.adapter)).weights.values()
    assert all(bool(torch.isfinite(tensor).all()) for tensor in weights)


@MODULE
async def test_nothing_to_train_on_is_said(trainer: LoraTrainer) -> None:
    empty = Sample(Trajectory(token_ids=(1, 2), mask=(0, 0), logprobs=(0.0, 0.0)), 1.0)
    with pytest.raises(OperationError, match="nothing to train on"):
        await trainer.train(TrainJob((empty,), (), None, 0, SETTINGS))


@MODULE
async def test_an_idle_trainer_gives_its_memory_back(trainer: LoraTrainer, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Trajectory(token_ids=(1, 2, 3), mask=(0, 1, 1), logprobs=(0.0, -1.0, -1.0))
    monkeypatch.setattr(trainer, "_idle_s", 0.01)
    await trainer.train(TrainJob((Sample(path, 1.0),), (), None, 0, SETTINGS))
    pid = trainer.pid
    async with asyncio.timeout(20):
        while trainer.pid is not None or Path(f"/proc/{pid}").exists():  # then its memory is the system's again
            await asyncio.sleep(0.01)


class Idle:
    """A worker that has done what it was asked, and notes whether it was sent away."""

    def __init__(self) -> None:
        self.rested = False

    async def call(self, method: str, *_: Any) -> Any:
        return {"environment": {}, "train_with_steps": (b"adapter", {}, (), b"")}[method]

    async def rest(self) -> None:
        self.rested = True

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("device", "largest", "makes_room"), [("cpu", 1 << 28, False), ("cpu", 1, True), ("cuda", 1 << 28, True)]
)
async def test_a_small_models_process_stays_and_a_large_ones_makes_room(
    folder: Path, device: str, largest: int, makes_room: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That which generates before a training, and that which trained afterwards."""
    monkeypatch.setattr(transformers, "LARGE", largest)
    artifacts, generating, training = MemoryArtifacts(), Idle(), Idle()
    model, trainer = (
        Transformers(folder, artifacts, name="x", device=device),
        LoraTrainer(folder, artifacts, device=device),
    )
    monkeypatch.setattr(model, "_worker", generating)
    monkeypatch.setattr(trainer, "_worker", training)
    assert isinstance(model, Resting)
    await model.rest()
    path = Trajectory(token_ids=(1, 2, 3), mask=(0, 1, 1), logprobs=(0.0, -1.0, -1.0))
    await trainer.train(TrainJob((Sample(path, 1.0),), (), None, 0, SETTINGS))
    assert (generating.rested, training.rested) == (makes_room, makes_room)
    await model.close()
    await trainer.close()


def test_a_model_that_is_not_small_is_computed_on_every_processor(tmp_path: Path) -> None:
    for name, size in (("small", 1 << 20), ("large", 1 << 26)):
        (tmp_path / name).mkdir()
        for file in (tmp_path / name / "model.safetensors", tmp_path / f"{name}.gguf"):
            file.touch()
            os.truncate(file, size)  # of holes: nothing is written
    processors = len(os.sched_getaffinity(0))
    for suffix in ("", ".gguf"):
        large, small = tmp_path / f"large{suffix}", tmp_path / f"small{suffix}"
        assert (threads_of(large, "cpu", 0), threads_of(small, "cpu", 0)) == (processors, 1)
        assert (threads_of(large, "cuda", 0), threads_of(large, "cpu", 3), threads_of(small, "cpu", 3)) == (1, 3, 3)


async def test_a_process_may_be_made_without_a_package() -> None:
    worker = Worker("statistics:NormalDist", {}, without=("statistics",))
    with pytest.raises(TransientError, match="statistics"):
        await worker.call("inv_cdf", 0.5)
    await worker.close()


async def test_a_file_beside_a_user_is_no_package_of_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "statistics.py").write_text("raise SystemExit('a script of mine')")
    monkeypatch.chdir(tmp_path)
    worker = Worker("statistics:NormalDist", {})
    assert await worker.call("inv_cdf", 0.5) == 0.0
    await worker.close()


async def test_a_call_that_nobody_waits_for_any_more_fails_in_silence() -> None:
    loop, complaints = asyncio.get_running_loop(), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    worker = Worker("threading:Event", {})
    call = asyncio.create_task(worker.call("wait"))
    while worker.pid is None:
        await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await worker.close()
    await loop.shutdown_default_executor()  # the thread that asked has its answer
    await asyncio.sleep(0)
    gc.collect(1)  # what is young
    assert not complaints


def test_only_quantized_models_need_the_package_for_it(folder: Path) -> None:
    assert transformers.unused(folder, "") == ("bitsandbytes",)
    assert transformers.unused(folder, "4bit") == ()


def test_replay_is_spread_among_the_steps() -> None:
    path = Trajectory(token_ids=(1, 2), mask=(0, 1), logprobs=(0.0, -1.0))
    samples = tuple(Sample(path, float(n)) for n in range(8))
    job = TrainJob(samples, samples[:3], None, 0, {})
    kinds = [kind for kind, _ in schedule(job, Recipe(minibatch=2, replay_steps=2))]
    assert kinds == ["policy", "policy", "replay", "policy", "replay", "policy"]


@pytest.mark.parametrize("there", [5, 12, 40, 200])
def test_what_is_replayed_is_never_twice_in_a_minibatch_where_it_is_scarce(there: int) -> None:
    """A few successes in many steps: sorted by length, their copies would be all that a minibatch holds."""
    paths = [
        Trajectory(token_ids=(1,) * (2 + n % 7), mask=(0,) + (1,) * (1 + n % 7), logprobs=(-1.0,) * (2 + n % 7))
        for n in range(there)
    ]
    replay = tuple(Sample(path, float(n)) for n, path in enumerate(paths))
    batches = [batch for _, batch in schedule(TrainJob((), replay, None, 0, {}), Recipe(minibatch=16, replay_steps=6))]
    assert [len(batch) for batch in batches] == [min(16, there)] * 6
    for batch in batches if there < 96 else ():
        assert len({sample.advantage for sample in batch}) == len(batch)
    most = max(len({len(sample.trajectory.token_ids) for sample in batch}) for batch in batches)
    assert most <= 3 if there >= 96 else most > 3, "of about one length only where there is enough"
