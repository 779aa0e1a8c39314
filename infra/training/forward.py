"""How likely the model in training finds trajectories: as a function of its weights where it is small, else through
transformers."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from agent0.errors import OperationError
from agent0.infra.engine.formats.packed_need import recomputed
from agent0.infra.engine.memory_need import at_once
from agent0.infra.engine.qwen2_functional import Weights, chances, parts_of, shape_of, weights_of
from agent0.infra.training.batches import Padded
from agent0.infra.training.full_finetune import Whole
from agent0.infra.training.packed_lora import PackedLora
from agent0.training.objectives.policy_gradient import token_logprobs

ADAPTER = "default"
"""peft's name of the adapter in training."""
Forward = Callable[[Padded, float], tuple[Tensor, Tensor | None]]
"""From trajectories and a temperature to log-probabilities [rows, T], right wherever the mask is 1, and to entropies
[rows, T] where a bonus is paid on them."""


def forward_of(model: Any, casting: Callable[[], AbstractContextManager[Any]], among: Tensor | None = None) -> Forward:
    """For ``model``, which peft holds an adapter in or is trained whole; through transformers it is computed within
    ``casting``. ``among``: the tokens among which entropies are asked for, of a small model."""
    base = model.get_base_model()
    if isinstance(model, PackedLora):
        return partial(_packed, model, among)
    shape, parts = shape_of(base), parts_of(base) if isinstance(model, Whole) else parts_of(model, ADAPTER)
    if shape and parts:
        twice = any(getattr(module, "gradient_checkpointing", False) for module in model.modules())
        return partial(_function, partial(weights_of, shape, *parts), twice, among)
    parted = body_and_head(base)
    compute = partial(masked_logprobs, *parted, casting) if parted else partial(transformers_logprobs, model, casting)
    return lambda batch, heat: (compute(batch, heat), None)


def _packed(model: PackedLora, among: Tensor | None, batch: Padded, heat: float) -> tuple[Tensor, Tensor | None]:
    twice = recomputed(model.get_base_model().gradient_checkpointing, int(batch.attention.sum()))
    return _function(model.under, twice, among, batch, heat)


def _function(
    weights: Callable[[], Weights], twice: bool, among: Tensor | None, batch: Padded, heat: float
) -> tuple[Tensor, Tensor | None]:
    text = (batch.ids, batch.attention, batch.mask)
    return chances(weights(), *text, heat, twice=twice, stretch=batch.stretch, among=among, prefix=batch.prefix)


def transformers_logprobs(
    model: Any, casting: Callable[[], AbstractContextManager[Any]], batch: Padded, heat: float
) -> Tensor:
    """Compute token log-probabilities [rows, T] with the transformers model at temperature ``heat``."""
    with casting():
        logits = model(input_ids=batch.ids, attention_mask=batch.attention, use_cache=False, **_positions(batch)).logits
    return token_logprobs(logits, batch.ids, heat)


def masked_logprobs(
    body: Any, head: Any, casting: Callable[[], AbstractContextManager[Any]], batch: Padded, heat: float
) -> Tensor:
    """Compute what ``transformers_logprobs`` computes where the mask is 1; 0 elsewhere. Logits are never held for more
    than ``at_once`` tokens: they are computed again on the way back, part by part."""
    selected = batch.mask[:, 1:].bool()
    with casting():
        output = body(
            input_ids=batch.ids, attention_mask=batch.attention, use_cache=False, **_positions(batch)
        ).last_hidden_state
        states, tokens = output[:, :-1][selected], batch.ids[:, 1:][selected]
        size = at_once(head.weight.shape[0])
        parts = [
            checkpoint(_chosen, head, heat, *part, use_reentrant=False)
            for part in zip(torch.split(states, size), torch.split(tokens, size), strict=True)
        ]
    each = torch.cat(parts)
    return pad(each.new_zeros(selected.shape).masked_scatter(selected, each), (1, 0))


def _positions(batch: Padded) -> dict[str, Tensor]:
    """What transformers is told of positions: nothing, unless they are stretched. Rotary ones need not be whole."""
    if batch.stretch is None:
        return {}
    return {"position_ids": (batch.attention.cumsum(-1) - 1).clamp(min=0) * batch.stretch[:, None]}


def check_stretch(base: Any) -> None:
    """Raises OperationError where positions of the model ``base`` are not rotary, so that they cannot be stretched."""
    if not getattr(base.config, "rope_parameters", None):
        why = f"The positions of {type(base).__name__} are not rotary: there is nothing between two of them."
        raise OperationError("Positions cannot be stretched here.", why, "Set run.training.<role>.stretch to 1.")


def _chosen(head: Any, heat: float, states: Tensor, tokens: Tensor) -> Tensor:
    """Log-probability of ``tokens`` [n] after ``states`` [n, hidden]; single precision, double where that is double."""
    logits = head(states)
    exact = logits if logits.dtype == torch.float64 else logits.float()
    return torch.log_softmax(exact / heat, dim=-1).gather(-1, tokens[:, None])[:, 0]


def body_and_head(base: Any) -> tuple[Any, Any] | None:
    """The part of ``base`` whose last hidden states its head turns into logits, and that head; None where its logits
    are anything else (scaled or bounded, say), which three tokens show."""
    body, head = getattr(base, "base_model", base), base.get_output_embeddings()
    if body is base or getattr(head, "weight", None) is None:
        return None
    device = head.weight.device
    ids = torch.arange(3, device=device)[None]
    with torch.no_grad():
        plain = head(body(input_ids=ids, use_cache=False).last_hidden_state)
        logits = base(input_ids=ids, use_cache=False).logits
    return (body, head) if torch.equal(plain, logits) else None
