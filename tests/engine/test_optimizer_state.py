"""An optimizer that goes on from training to training: as if it had never stopped, by the state of its parent alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim import AdamW, Muon, Optimizer
from transformers import PreTrainedTokenizerFast

from agent0.errors import OperationError
from agent0.events.values import Artifact
from agent0.infra.training import lora_trainer
from agent0.infra.training.loop import Training
from agent0.infra.training.lora_trainer import LoraTrainer
from agent0.infra.training.optimizer_state import pack_state, take_state, tensors_of
from tests.engine.test_saving import job_of
from tests.memory import MemoryArtifacts

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own
CONTINUED = {"optimizer_state": "continued"}
PARENT = b"adapter"


def two_matrices() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 3, bias=False), torch.nn.Linear(3, 2, bias=False))


def steps(model: torch.nn.Module, optimizer: Optimizer, inputs: torch.Tensor) -> None:
    for row in inputs:
        optimizer.zero_grad()
        model(row).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("kind", [AdamW, Muon])
def test_it_goes_on_as_if_it_had_never_stopped(kind: Any) -> None:
    inputs = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
    whole, parted = two_matrices(), two_matrices()
    steps(whole, kind(whole.parameters(), lr=0.05), inputs)
    first = kind(parted.parameters(), lr=0.05)
    steps(parted, first, inputs[:3])
    stored = pack_state(tensors_of(parted, [first]), PARENT, "it")
    assert stored == pack_state(tensors_of(parted, [first]), PARENT, "it")
    second = kind(parted.parameters(), lr=0.05)
    assert take_state(parted, [second], stored, PARENT, "it").startswith("continued")
    steps(parted, second, inputs[3:])
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), parted.parameters(), strict=True))
    anew = two_matrices()
    steps(anew, kind(anew.parameters(), lr=0.05), inputs[:3])
    steps(anew, kind(anew.parameters(), lr=0.05), inputs[3:])
    assert not all(torch.equal(a, b) for a, b in zip(whole.parameters(), anew.parameters(), strict=True))


def stored_state(model: torch.nn.Module, optimizer: str = "adamw") -> bytes:
    made = AdamW(model.parameters(), lr=0.05)
    steps(model, made, torch.ones(1, 4))
    return pack_state(tensors_of(model, [made]), PARENT, optimizer)


@pytest.mark.parametrize(
    ("state", "parent", "why"),
    [
        (b"", PARENT, "the parent has no state"),
        (stored_state(two_matrices(), "muon"), PARENT, "of muon"),
        (stored_state(two_matrices()), b"another", "belongs to adapter"),
        (stored_state(torch.nn.Sequential(torch.nn.Linear(4, 3, bias=False))), PARENT, ""),
        (stored_state(torch.nn.Sequential(torch.nn.Linear(4, 5, bias=False))), PARENT, "shape"),
        (stored_state(torch.nn.Sequential(*two_matrices(), torch.nn.Linear(2, 2, bias=False))), PARENT, "shape"),
        (stored_state(two_matrices())[:-4], PARENT, "Safetensor"),
        (b"\xff" * 40, PARENT, "Error"),
        (b"no tensors", PARENT, "Error"),
        (pack_state({}, PARENT, "adamw").replace(b"adamw", b"\xff\xff\xff\xff\xff"), PARENT, "Error"),
    ],
)
def test_what_is_foreign_or_damaged_is_named_and_touches_nothing(state: bytes, parent: bytes, why: str) -> None:
    """Nothing, and another optimizer's state, are begun anew by name; the rest is refused."""
    model = two_matrices()
    optimizer = AdamW(model.parameters(), lr=0.05)
    if why.startswith(("the parent", "of ")) or not why:
        said = take_state(model, [optimizer], state, parent, "adamw")
        assert said.startswith("anew: " if why else "continued from") and why in said
    else:
        with pytest.raises(OperationError, match="not the parent's") as refused:
            take_state(model, [optimizer], state, parent, "adamw")
        assert why in str(refused.value)
    assert bool(tensors_of(model, [optimizer])) == (not why)


class Worker:
    """Trains in this process."""

    def __init__(self, _: str, options: dict[str, Any], **__: Any) -> None:
        self._training = Training(options["path"])

    async def call(self, method: str, *arguments: Any) -> Any:
        return getattr(self._training, method)(*arguments)

    async def close(self) -> None: ...


async def test_a_trainer_keeps_the_state_beside_the_adapter_and_takes_no_other(
    folder: Path, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lora_trainer, "Worker", Worker)
    artifacts = MemoryArtifacts()
    trainer = LoraTrainer(folder, artifacts)
    plain = await trainer.train(job_of(tokenizer))
    assert plain.optimizer is None and "optimizer" not in plain.environment

    first = await trainer.train(job_of(tokenizer, **CONTINUED))
    assert first.optimizer and first.environment["optimizer"] == "anew: the parent has no state"
    assert artifacts.get(first.adapter) == artifacts.get(plain.adapter), "nothing was there to go on with"
    job = replace(job_of(tokenizer, **CONTINUED), parent=first.adapter, optimizer=first.optimizer)
    second, again = await trainer.train(job), await trainer.train(job)
    assert second.adapter == again.adapter and second.optimizer == again.optimizer != first.optimizer
    assert second.environment["optimizer"] == f"continued from {first.optimizer.sha256[:12]}"
    assert (await trainer.train(replace(job, optimizer=None))).adapter != second.adapter
    with pytest.raises(OperationError, match="not the parent's"):
        await trainer.train(replace(job, parent=second.adapter))
    missing = Artifact(sha256="a" * 64, size=9)
    with pytest.raises(OperationError, match="cannot be read"):
        await trainer.train(replace(job, optimizer=missing))
    assert (await trainer.train(replace(job, settings=job_of(tokenizer).settings))).optimizer is None
    await trainer.close()
