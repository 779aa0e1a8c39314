"""On a GPU: what it writes and how likely it finds it agree with the CPU, and it learns, in every precision.

``AGENT0_TEST_DEVICE=cpu`` runs them without one, but for what asks the card itself.
"""

import gc
import logging
import os
from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState
from transformers import PreTrainedTokenizerFast

from agent0.errors import DependencyError, OperationError
from agent0.events.values import Trajectory
from agent0.infra.engine.adapter import unpack
from agent0.infra.engine.inference import Engine
from agent0.infra.training.launch.memory_estimate import memory_need_of
from agent0.infra.training.launch.recipe import Recipe
from agent0.infra.training.loop import Training
from agent0.ports.training import Sample, TrainJob
from tests.engine.asking import wanted
from tests.engine.models import saved

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning"),  # peft's own
    pytest.mark.skipif(
        not torch.cuda.is_available() and "AGENT0_TEST_DEVICE" not in os.environ, reason="torch sees no GPU"
    ),
]
DEVICE = os.environ.get("AGENT0_TEST_DEVICE", "cuda")
KINDS = {
    "function": {"precision": "fp32"},
    "transformers": {"precision": "fp32", "through": True},
    "bf16": {"precision": "bf16"},
    "4bit": {"precision": "bf16", "quantization": "4bit"},
}
TOO_LOW = pytest.mark.xfail(reason="an H200 held 1.2 times the estimate (docs/results/gpu.md); fitting it needs a GPU")
ASKED = [wanted(f"What is {n}+2?", seed=n, max_tokens=12, temperature=1.0) for n in range(8)]


@pytest.fixture(scope="module")
def wide(tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wide enough for blocks of 64 weights that share a scale."""
    return saved(tmp_path_factory.mktemp("wide"), tokenizer, hidden_size=64, intermediate_size=128)


@pytest.fixture(autouse=True)
def _another_precision() -> None:
    """Accelerate keeps the first precision of a process: each test has one of its own."""
    AcceleratorState._reset_state(reset_partial_state=True)


def engine_of(folder: Path, kind: str, device: str = DEVICE) -> Engine:
    return Engine(str(folder), device=device, **KINDS[kind])  # type: ignore[arg-type]


def training_of(folder: Path, kind: str) -> Training:
    known = {name: value for name, value in KINDS[kind].items() if name != "through"}
    return Training(str(folder), device=DEVICE, **known)  # type: ignore[arg-type]


def samples(engine: Engine) -> tuple[Sample, ...]:
    found = []
    for place, one in enumerate(engine.generate(ASKED)):
        mask = (0,) * len(one.prompt) + (1,) * len(one.ids)
        logprobs = (0.0,) * len(one.prompt) + tuple(one.logprobs)
        ids = (*one.prompt, *one.ids)
        found.append(Sample(Trajectory(token_ids=ids, mask=mask, logprobs=logprobs), (-1.0) ** place))
    return tuple(found)


def job_of(engine: Engine, **settings: object) -> TrainJob:
    plain = {"rank": 4, "alpha": 8, "lr": 0.005, "replay_steps": 0, "minibatch": 8, "epochs": 8}
    return TrainJob(samples(engine), (), None, 3, plain | settings)


@pytest.mark.parametrize("kind", ["function", "transformers"])
def test_in_single_precision_it_writes_what_a_cpu_writes(wide: Path, kind: str) -> None:
    here, there = engine_of(wide, kind).generate(ASKED), engine_of(wide, kind, "cpu").generate(ASKED)
    assert [one.ids for one in here] == [one.ids for one in there]
    for one, other in zip(here, there, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-3)


@pytest.mark.parametrize(("kind", "apart"), [("function", 1e-3), ("bf16", 0.05), ("4bit", 0.05)])
def test_training_finds_tokens_as_likely_as_they_were_when_sampled(wide: Path, kind: str, apart: float) -> None:
    job = job_of(engine_of(wide, kind), objective="grpo", epochs=1, lr=0.0)
    _, metrics = training_of(wide, kind).train(job, b"")
    assert metrics["steps"] == 1 and metrics["ratio"] == pytest.approx(1.0, abs=apart)


@pytest.mark.parametrize("kind", ["function", "bf16", "4bit"])
@pytest.mark.parametrize("recipe", [{"objective": "sft"}, {"objective": "sft", "stretch": 2.0}, {"objective": "grpo"}])
def test_it_learns_and_its_adapter_comes_back(wide: Path, kind: str, recipe: dict[str, object]) -> None:
    engine = engine_of(wide, kind)
    job = job_of(engine, **recipe)
    adapter, metrics = training_of(wide, kind).train(job, b"")
    assert metrics["steps"] >= 4 and metrics["skipped"] == 0
    assert DEVICE == "cpu" or metrics["peak_mib"] > 0
    engine.load_adapter("trained", adapter)
    good = [(asked.turns, [one.text]) for asked, one in zip(ASKED, engine.generate(ASKED), strict=True)][::2]
    before, after = (sum(engine.likelihood(*one, name)[0].logprob for one in good) for name in ("", "trained"))
    assert after > before


@pytest.mark.parametrize("rank", [0, 4])
def test_the_same_job_ends_alike(wide: Path, rank: int) -> None:
    training, job = training_of(wide, "function"), job_of(engine_of(wide, "function"), objective="sft", rank=rank)
    first, again = (unpack(training.train(job, b"")[0]).weights for _ in range(2))
    assert all(torch.allclose(one, again[name], atol=1e-5) for name, one in first.items())
    engine = engine_of(wide, "function")
    engine.load_adapter("trained", training.train(job, b"")[0])
    assert len(engine.generate(ASKED, "trained")) == len(ASKED)


@pytest.mark.skipif(DEVICE == "cpu", reason="asks the card")
@pytest.mark.parametrize("kind", [pytest.param("function", marks=TOO_LOW), "bf16", "4bit"])
def test_the_memory_that_is_foreseen_is_enough(tokenizer: PreTrainedTokenizerFast, tmp_path: Path, kind: str) -> None:
    folder = saved(tmp_path, tokenizer, hidden_size=512, intermediate_size=1408, num_hidden_layers=8)
    ids = tuple(5 + n % 90 for n in range(400))
    sample = Sample(Trajectory(token_ids=ids, mask=(0,) * 200 + (1,) * 200, logprobs=(-1.0,) * 400), 1.0)
    settings = {"rank": 8, "alpha": 16, "replay_steps": 0, "minibatch": 8, "micro_batch": 8, "objective": "grpo"}
    job = TrainJob((sample,) * 8, (), None, 0, settings)
    gc.collect()
    before, training = torch.cuda.memory_allocated(), training_of(folder, kind)
    training.train(job, b"")
    peak = training.train(job, b"")[1]["peak_mib"] * 2**20 - before
    quantization, precision = KINDS[kind].get("quantization", ""), KINDS[kind]["precision"]
    foreseen = memory_need_of(folder, job, Recipe.of(job), DEVICE, str(quantization), str(precision)).total
    logging.getLogger().info("%s: %.0f MiB held, %.0f MiB foreseen", kind, peak / 2**20, foreseen / 2**20)
    assert peak <= foreseen <= 2 * peak


@pytest.mark.skipif(DEVICE == "cpu", reason="asks the card")
def test_what_cannot_be_done_is_refused_before_it_begins(wide: Path) -> None:
    with pytest.raises(DependencyError, match=r"cuda:64.*torch sees"):
        Engine(str(wide), device="cuda:64")
    engine = engine_of(wide, "bf16")
    with pytest.raises(OperationError, match=r"rank 0.*precision fp32"):
        training_of(wide, "bf16").train(job_of(engine, rank=0), b"")
