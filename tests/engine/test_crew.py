"""Several training processes, as accelerate launches them: what they make together, and what becomes of them."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from agent0.errors import OperationError, TransientError
from agent0.events.values import Trajectory
from agent0.infra.engine.adapter import unpack
from agent0.infra.training.loop import Training
from agent0.infra.training.lora_trainer import LoraTrainer
from agent0.infra.training.progress import pace_of
from agent0.ports.training import Sample
from tests.engine.test_saving import job_of
from tests.memory import MemoryArtifacts

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning"),  # peft 0.21's own
]


def members(launcher: int) -> list[int]:
    """The processes that a launcher started, by what the system says of their parents."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == launcher:
                found.append(int(stat.parent.name))
        except (OSError, ValueError):
            continue
    return found


async def test_two_processes_make_what_one_makes(
    folder: Path, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    """Up to the order of sums, and always the same; a killed crew goes on where it was, and an error ends it whole."""
    artifacts, alone = MemoryArtifacts(), job_of(tokenizer, samples=7, kl=0.1)
    job = replace(alone, settings={**alone.settings, "processes": 2})
    whole, counted = Training(str(folder)).train(alone, b"")
    trainer = LoraTrainer(folder, artifacts, kept=tmp_path, every_s=0.0)
    try:
        made = await trainer.train(job)
        assert made.environment["processes"] == "2"
        ours, theirs = (unpack(data).weights for data in (artifacts.get(made.adapter), whole))
        assert all(torch.allclose(ours[name], theirs[name], rtol=1e-3, atol=1e-5) for name in theirs)
        assert made.metrics["tokens"] == counted["tokens"]
        assert made.metrics["ratio"] == pytest.approx(counted["ratio"], rel=1e-4)
        longer = replace(job, settings={**job.settings, "epochs": 40})
        expected = await trainer.train(longer)
        under_way = asyncio.create_task(trainer.train(longer))
        while not list(tmp_path.glob("*.safetensors")):
            assert not under_way.done()
            await asyncio.sleep(0.005)
        assert pace_of(tmp_path, "student-0", job.seed) is not None
        assert trainer.pid is not None
        crew = members(trainer.pid)
        os.kill(crew[1], signal.SIGKILL)
        with pytest.raises(TransientError):
            await under_way
        assert (await trainer.train(longer)).adapter == expected.adapter
        odd = Sample(Trajectory(token_ids=(1, 10**6), mask=(0, 1), logprobs=(0.0, -1.0)), 1.0)
        with pytest.raises(OperationError, match="another model"):
            await trainer.train(replace(job, samples=(odd,)))
        assert (await trainer.train(job)).adapter == made.adapter
        assert trainer.pid is not None
        crew = members(trainer.pid)
    finally:
        await trainer.close()
    assert len(crew) == 2 and not any(Path(f"/proc/{pid}").exists() for pid in crew)
