"""A training that was killed goes on, and ends in the adapter that it would have had."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from agent0.errors import TransientError
from agent0.events.values import TrainingStep, Trajectory
from agent0.infra.engine.adapter import BASE
from agent0.infra.training.checkpointing import HalfDone
from agent0.infra.training.loop import Training
from agent0.infra.training.lora_trainer import LoraTrainer
from agent0.infra.training.progress import pace_of
from agent0.infra.weights.safetensors_io import digest
from agent0.ports.training import Sample, TrainJob
from tests.memory import MemoryArtifacts

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own
SETTINGS = {"lr": 5e-3, "rank": 4, "alpha": 8, "minibatch": 2, "replay_steps": 2, "epochs": 2, "weight_decay": 0.01}


def job_of(tokenizer: PreTrainedTokenizerFast, samples: int = 5, **settings: Any) -> TrainJob:
    def path(n: int) -> Trajectory:
        ids = tuple(tokenizer.encode(f"What is {n}+2? It is {n + 2}."))
        half = len(ids) // 2
        mask = (0,) * half + (1,) * (len(ids) - half)
        return Trajectory(token_ids=ids, mask=mask, logprobs=tuple(-1.5 * m for m in mask))

    paths = [Sample(path(n), (-1.0) ** n, 0.3) for n in range(samples)]
    return TrainJob(tuple(paths), tuple(paths[:2]), None, 5, {**SETTINGS, **settings}, {"checkpoint": "student-0"})


class Killed(BaseException):
    """Stands for a kill right after a saving."""


def test_killed_after_any_step_it_ends_in_the_same_adapter(
    folder: Path, tokenizer: PreTrainedTokenizerFast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And remembers what it would have, which it began with what the parent's training did."""
    training, settings = Training(str(folder)), {"optimizer_state": "continued"}
    parent, _, _, state = training.train_with_steps(job_of(tokenizer, **settings), b"")
    job = job_of(tokenizer, lr=1e-3, **settings)
    whole, metrics, steps, remembered = training.train_with_steps(job, parent, "", 1e9, state)
    assert metrics["steps"] == len(steps) == 8
    saving, kept = HalfDone.save, tmp_path / "half.safetensors"

    for last in range(1, 9):
        kept.unlink(missing_ok=True)

        def save(self: HalfDone, *arguments: object, last: int = last) -> None:
            saving(self, *arguments)  # type: ignore[arg-type]
            if arguments[2] == last:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(HalfDone, "save", save)
            with pytest.raises(Killed):
                training.train(job, parent, str(kept), 0.0, state)
        again, told, steps_again, remembered_again = training.train_with_steps(job, parent, str(kept), 1e9, state)
        assert (again, steps_again, remembered_again) == (whole, steps, remembered)
        assert {k: v for k, v in told.items() if k != "seconds"} == {k: v for k, v in metrics.items() if k != "seconds"}


@pytest.mark.parametrize("damage", [b"", b"no tensors", None])
def test_what_is_damaged_or_of_another_job_is_not_gone_on_with(
    folder: Path, tokenizer: PreTrainedTokenizerFast, tmp_path: Path, damage: bytes | None
) -> None:
    training, kept = Training(str(folder)), tmp_path / "half.safetensors"
    job = job_of(tokenizer)
    if damage is None:
        training.train(job_of(tokenizer, lr=1e-2), b"", str(kept), 0.0)
    else:
        kept.write_bytes(damage)
    assert training.train(job, b"", str(kept), 1e9)[0] == training.train(job, b"")[0]


@pytest.mark.slow  # part of make crash
async def test_a_trainer_that_is_killed_goes_on(
    folder: Path, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    artifacts = MemoryArtifacts()
    job = job_of(tokenizer, samples=8, epochs=8)
    noted = replace(job, metadata={**job.metadata, BASE: digest(folder)})
    whole, _ = Training(str(folder)).train(noted, b"")
    trainer = LoraTrainer(folder, artifacts, kept=tmp_path, every_s=0.0)
    try:
        under_way = asyncio.create_task(trainer.train(job))
        while not list(tmp_path.glob("*.safetensors")):
            assert not under_way.done()
            await asyncio.sleep(0.005)
        assert trainer.pid is not None
        told = pace_of(tmp_path, "student-0", job.seed)
        assert told is not None and told.total == 34 and 0 <= told.done <= 34
        assert len(told.steps) == told.done and all(TrainingStep(**step).tokens > 0 for step in told.steps)
        os.kill(trainer.pid, signal.SIGKILL)
        with pytest.raises(TransientError):
            await under_way
        assert pace_of(tmp_path, "student-0", job.seed) is None
        again = await trainer.train(job)
    finally:
        await trainer.close()
    assert artifacts.get(again.adapter) == whole
    assert not list(tmp_path.glob("*.safetensors"))
