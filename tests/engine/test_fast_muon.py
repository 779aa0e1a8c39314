"""Muon instead of AdamW: what a step is, and that a killed training still ends in the same adapter."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from agent0.errors import OperationError
from agent0.infra.engine.adapter import unpack
from agent0.infra.training.checkpointing import HalfDone
from agent0.infra.training.loop import Training
from tests.engine.test_saving import Killed, job_of

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own


@pytest.fixture(scope="module")
def training(folder: Path) -> Training:
    return Training(str(folder))


def test_a_step_is_as_long_in_every_direction(training: Training, tokenizer: PreTrainedTokenizerFast) -> None:
    """Second matrices begin as zeros, so after one step they are that step: its singular values are all about the
    learning rate, times the root of how much taller than wide a matrix is."""
    job = job_of(tokenizer, minibatch=5, epochs=1, replay_steps=0, weight_decay=0.0, lr=0.01)
    muon, metrics = training.train(replace(job, settings={**job.settings, "optimizer": "muon"}), b"")
    assert metrics["steps"] == 1 and metrics["skipped"] == 0
    moved = {name: one for name, one in unpack(muon).weights.items() if "lora_B" in name}
    assert moved
    for one in moved.values():
        sizes = torch.linalg.svdvals(one) / (0.01 * max(1.0, one.shape[0] / one.shape[1]) ** 0.5)
        assert float(sizes.min()) > 0.5 and float(sizes.max()) < 1.5
    adamw = unpack(training.train(job, b"")[0]).weights
    assert any(float(torch.linalg.cond(adamw[name])) > 3 for name in moved)


def test_killed_it_ends_in_the_same_adapter(
    training: Training, tokenizer: PreTrainedTokenizerFast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = job_of(tokenizer, lr=0.02)
    job, kept = replace(plain, settings={**plain.settings, "optimizer": "muon"}), tmp_path / "half.safetensors"
    whole, _ = training.train(job, b"")
    assert whole != training.train(plain, b"")[0]
    saving = HalfDone.save

    def save(self: HalfDone, *arguments: Any) -> None:
        saving(self, *arguments)
        if arguments[2] == 4:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(HalfDone, "save", save)
        with pytest.raises(Killed):
            training.train(job, b"", str(kept), 0.0)
    assert training.train(job, b"", str(kept), 1e9)[0] == whole


def test_an_unknown_optimizer_is_told(training: Training, tokenizer: PreTrainedTokenizerFast) -> None:
    job = job_of(tokenizer)
    with pytest.raises(OperationError, match="no optimizer 'lion'"):
        training.train(replace(job, settings={**job.settings, "optimizer": "lion"}), b"")
