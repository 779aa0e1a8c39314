"""Our losses and their slopes equal those that TRL's ``GRPOTrainer._compute_loss`` computes, to 1e-6, as a step takes
them: divisor, clips and KL included.

TRL is not needed: ``golden/trl_losses.json`` has its numbers, which ``write`` noted, in double precision, by
``pip install --no-deps trl datasets dill multiprocess xxhash && python -m tests.test_trl_losses``. TRL's
``loss_type="grpo"`` at the level of tokens (each attempt's mean) is none of ours: our ``grpo`` is ``bnpo``.
"""

import importlib
import json
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from agent0.events.values import Trajectory
from agent0.infra.training import step
from agent0.infra.training.batches import Padded
from agent0.infra.training.launch.distributed import Team
from agent0.infra.training.launch.recipe import Recipe
from agent0.ports.training import Sample

GOLDEN = Path(__file__).parent / "golden" / "trl_losses.json"
KL, BUDGET = 0.25, 8
CASES: dict[str, dict[str, Any]] = {
    "grpo": {"loss_type": "bnpo"},
    "dr_grpo": {"loss_type": "dr_grpo"},
    "dapo": {"loss_type": "dapo", "epsilon_high": 0.28},
    "gspo": {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon_low": 0.03, "epsilon_high": 0.04},
    "cispo": {"loss_type": "cispo", "epsilon_high": 1.5},
}
"""Our objective -> TRL's arguments. Its ``epsilon_high`` of CISPO is the bound itself, ours is what it is above 1."""


def numbers() -> dict[str, Any]:
    return dict(json.loads(GOLDEN.read_text()))


@pytest.mark.parametrize("kl", [0.0, KL])
@pytest.mark.parametrize("rows", [0, 1], ids=["whole", "in parts"])
@pytest.mark.parametrize("name", CASES)
def test_a_step_is_trls(name: str, rows: int, kl: float, monkeypatch: pytest.MonkeyPatch) -> None:
    golden = numbers()
    inputs, expected = golden["inputs"], golden["cases"][f"{name} {kl}"]
    new = torch.tensor(inputs["new"], dtype=torch.float64, requires_grad=True)
    monkeypatch.setattr(step, "forward_of", lambda *_: forward(new))
    high = CASES[name].get("epsilon_high", 0.2) - (name == "cispo")
    paths = [
        Trajectory(token_ids=(n, *[9] * len(mask)), mask=(0, *mask), logprobs=(0.0, *old))
        for n, (mask, old) in enumerate(zip(inputs["mask"], inputs["old"], strict=True))
    ]
    batch = [Sample(path, advantage, high) for path, advantage in zip(paths, inputs["advantages"], strict=True)]
    low = CASES[name].get("epsilon_low", 0.2)
    recipe = Recipe(objective=name, clip_low=low, kl=kl, max_tokens=BUDGET, micro_batch=rows)
    ours = step.Step(SimpleNamespace(config=SimpleNamespace(vocab_size=10)), recipe, Team("cpu", "fp32"), 0)
    with torch.no_grad():
        moved = new.clone()
        new.copy_(torch.tensor(inputs["reference"]))
        ours.remember([batch])
        new.copy_(moved)
    metrics = ours.gradients("policy", batch)
    assert metrics["loss"] == pytest.approx(expected["loss"], abs=1e-6)
    assert new.grad is not None and new.grad.numpy() == pytest.approx(torch.tensor(expected["slope"]).numpy(), abs=1e-6)
    assert abs(torch.tensor(expected["slope"])).max() > 0.01


def forward(new: Tensor) -> Any:
    """Plays a model that finds token t of the row that begins with n as likely as ``new`` [rows, T] says."""

    def logprobs(batch: Padded, _: float) -> tuple[Tensor, None]:
        return torch.nn.functional.pad(new[batch.ids[:, 0]], (1, 0)), None

    return logprobs


def test_the_objectives_differ_on_these_numbers() -> None:
    golden = numbers()
    losses = [golden["cases"][f"{name} 0.0"]["loss"] for name in CASES]
    assert min(abs(a - b) for n, a in enumerate(losses) for b in losses[:n]) > 1e-3


# --- with TRL


def write() -> None:
    """Note what TRL computes. Inputs are multiples of 1/64, which single precision holds as they are."""
    trainer = importlib.import_module("trl.trainer.grpo_trainer").GRPOTrainer
    generator = torch.Generator().manual_seed(5)

    def drawn(*shape: int, low: int, high: int) -> Tensor:
        return torch.randint(low, high, shape, generator=generator).double() / 64

    new = -drawn(4, 6, low=1, high=128)
    inputs = {
        "new": new,
        "old": new + drawn(4, 6, low=-40, high=40),
        "reference": new + drawn(4, 6, low=-40, high=40),
        "mask": torch.tensor([[1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1], [1, 0, 0, 1, 1, 0], [1, 1, 1, 1, 0, 0]]),
        "advantages": drawn(4, low=-96, high=96),
    }
    cases = {
        f"{name} {kl}": computed(trainer, inputs, arguments, kl)
        for name, arguments in CASES.items()
        for kl in (0.0, KL)
    }
    plain = {name: value.tolist() for name, value in inputs.items()}
    version = importlib.import_module("trl").__version__
    GOLDEN.write_text(json.dumps({"trl": version, "inputs": plain, "cases": cases}, indent=1) + "\n")


def computed(trainer: Any, inputs: dict[str, Tensor], arguments: dict[str, Any], kl: float) -> dict[str, Any]:
    """The loss, and its slope by each token's log-probability, of ``trainer`` with a stand-in for itself."""
    new = inputs["new"].clone().requires_grad_()
    own: dict[str, Any] = {
        "importance_sampling_level": "token", "epsilon_low": 0.2, "epsilon_high": 0.2, "beta": kl,
        "max_completion_length": BUDGET, "aux_loss_enabled": False, "top_entropy_quantile": 1.0,
        "off_policy_mask_threshold": None, "use_vllm": False, "_entropy_bonus_enabled": False,
        "current_gradient_accumulation_steps": 1, "model": SimpleNamespace(training=True),
        "args": SimpleNamespace(use_bias_correction_kl=False, delta=None, steps_per_generation=1),
        "accelerator": SimpleNamespace(num_processes=1, gather=lambda x: x, reduce=lambda x, **_: x),
        "_metrics": {"train": defaultdict(list)},
        "_get_per_token_logps_and_entropies": lambda *_, **__: (new, torch.zeros_like(new), None),
    }  # fmt: skip
    prompt, mask = torch.ones(4, 1, dtype=torch.long), inputs["mask"]
    batch = {
        "prompt_ids": prompt, "prompt_mask": prompt, "completion_ids": mask, "completion_mask": mask,
        "old_per_token_logps": inputs["old"], "ref_per_token_logps": inputs["reference"],
        "advantages": inputs["advantages"], "num_items_in_batch": mask.sum(),
    }  # fmt: skip
    loss = trainer._compute_loss(SimpleNamespace(**(own | arguments)), None, batch)
    loss.backward()
    assert new.grad is not None
    return {"loss": float(loss), "slope": new.grad.tolist()}


if __name__ == "__main__":
    write()
