"""Logits of a large model are held where the loss is, part by part, and the gradient is that of all of them."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from agent0.infra.engine import memory_need
from agent0.infra.engine.inference import load
from agent0.infra.training import forward
from agent0.infra.training.batches import Padded
from tests.engine.models import with_lora

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    """In double precision, LoRA's second matrices no longer zero."""
    torch.manual_seed(3)
    found: Any = with_lora(load(str(folder), "cpu", "")[0], 4, 8).double()
    with torch.no_grad():
        for parameter in found.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.05)
    return found.train()


def batch(vocabulary: int, *masks: tuple[int, ...]) -> Padded:
    rows, longest = len(masks), len(masks[0])
    ids = torch.randint(0, vocabulary, (rows, longest), generator=torch.Generator().manual_seed(1))
    mask, zeros = torch.tensor(masks), torch.zeros(rows, longest)
    return Padded(ids, torch.ones_like(ids), mask, zeros)


MASKS = ((0, 0, 1, 1, 1, 0, 0, 1), (0, 1, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0, 0), (1, 1, 1, 1, 1, 1, 1, 1))


@pytest.mark.parametrize("tokens", [1, 3, 100])
def test_loss_and_gradient_are_those_of_all_logits(model: Any, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    base = model.get_base_model()
    monkeypatch.setattr(memory_need, "LOGITS", tokens * base.config.vocab_size)
    seen, own = (
        batch(base.config.vocab_size, *MASKS),
        [parameter for parameter in model.parameters() if parameter.requires_grad],
    )
    parted = forward.body_and_head(base)
    assert parted is not None
    few = forward.masked_logprobs(*parted, nullcontext, seen, 0.7)
    full = forward.transformers_logprobs(model, nullcontext, seen, 0.7)
    assert torch.allclose(few, full * seen.mask, rtol=1e-12)
    weight = torch.randn(full.shape, generator=torch.Generator().manual_seed(2), dtype=full.dtype) * seen.mask
    found, expected = (torch.autograd.grad((one * weight).sum(), own) for one in (few, full))
    assert any(bool(one.any()) for one in found)
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-12 * float(other.abs().max()))


def test_no_part_holds_more_logits_than_named(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    base, asked = model.get_base_model(), []
    parted = forward.body_and_head(base)
    assert parted is not None
    body, head = parted

    class Noting:
        weight = head.weight

        def __call__(self, states: torch.Tensor) -> torch.Tensor:
            asked.append(len(states))
            return head(states)

    monkeypatch.setattr(memory_need, "LOGITS", 3 * base.config.vocab_size)
    seen = batch(base.config.vocab_size, *MASKS)
    forward.masked_logprobs(body, Noting(), nullcontext, seen, 1.0).sum().backward()
    own = sum(map(sum, MASKS)) - 1  # nothing predicts a row's first token
    assert max(asked) == 3 and sum(asked) == 2 * own  # once, and again on the way back


def test_a_model_that_changes_its_logits_is_asked_for_all_of_them() -> None:
    from transformers import GraniteConfig, GraniteForCausalLM

    sizes = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    scaled, plain = (
        GraniteForCausalLM(GraniteConfig(**sizes, **heads, logits_scaling=scale)).eval() for scale in (4.0, 1.0)
    )
    assert forward.body_and_head(scaled) is None
    assert forward.body_and_head(plain) is not None
