"""QLoRA on a CPU: a model in 4 bits writes, learns, and its adapter comes back."""

import math
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from agent0.events.values import Trajectory
from agent0.infra.engine.inference import Engine, load
from agent0.infra.training.loop import Training
from agent0.ports.training import Sample, TrainJob
from tests.engine.asking import user, wanted
from tests.engine.models import saved

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own
QUANTIZED = {"quantization": "4bit"}


@pytest.fixture(scope="module")
def wide(tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wide enough for blocks of 64 weights that share a scale."""
    return saved(tmp_path_factory.mktemp("wide"), tokenizer, hidden_size=64, intermediate_size=128)


def test_its_linear_layers_are_in_4_bits(wide: Path) -> None:
    small, whole = (load(str(wide), "cpu", quantization)[0] for quantization in ("4bit", ""))
    weight, full = (model.model.layers[0].mlp.up_proj.weight for model in (small, whole))
    assert weight.dtype == torch.uint8 and weight.numel() * 2 == full.numel()
    assert small.model.embed_tokens.weight.dtype == torch.float32


def test_it_writes_learns_and_comes_back(wide: Path) -> None:
    engine = Engine(str(wide), **QUANTIZED)  # type: ignore[arg-type]
    asked = [wanted("What is 1+2?", seed, max_tokens=6) for seed in range(4)]
    said = engine.generate(asked)
    assert all(one.ids and len(one.ids) == len(one.logprobs) for one in said)
    path = said[0]
    trajectory = Trajectory(
        token_ids=(*path.prompt, *path.ids),
        mask=(0,) * len(path.prompt) + (1,) * len(path.ids),
        logprobs=(0.0,) * len(path.prompt) + tuple(path.logprobs),
    )
    settings = {"rank": 4, "alpha": 8, "lr": 1e-2, "replay_steps": 6, "minibatch": 1}
    training = Training(str(wide), **QUANTIZED)  # type: ignore[arg-type]
    job = TrainJob((), (Sample(trajectory, 1.0),), None, 3, settings)
    adapter, metrics = training.train(job, b"")
    assert metrics["steps"] == 6 and metrics["skipped"] == 0
    assert training.train(job, b"")[0] == adapter  # nothing of a job stays in the base
    engine.load_adapter("trained", adapter)
    before, after = (
        engine.likelihood((user("What is 1+2?"),), [path.text], name)[0].logprob for name in ("", "trained")
    )
    assert after > before + math.log(2)
    again = Engine(str(wide), **QUANTIZED)  # type: ignore[arg-type]
    again.load_adapter("trained", adapter)
    kept, loaded = engine.generate(asked, "trained"), again.generate(asked, "trained")
    assert [one.ids for one in kept] == [one.ids for one in loaded]
    for one, other in zip(kept, loaded, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-6)
