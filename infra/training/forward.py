"""How likely the model in training finds trajectories: as a function of its weights where it is small, else through
transformers."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from torch import Tensor

from agent0.training.objectives.policy_gradient import token_logprobs
from infra.engine.qwen2_functional import Pairs, Shape, logprobs, parts_of, shape_of, weights_of
from infra.training.batches import Padded
from infra.training.full_finetune import Whole

ADAPTER = "default"
"""peft's name of the adapter in training."""
Forward = Callable[[Padded, float], Tensor]
"""From trajectories and a temperature to log-probabilities [rows, T], right wherever the mask is 1."""


def forward_of(model: Any, casting: Callable[[], AbstractContextManager[Any]]) -> Forward:
    """For ``model``, which peft holds an adapter in or is trained whole; through transformers it is computed within
    ``casting``."""
    base = model.get_base_model()
    shape, parts = shape_of(base), parts_of(base) if isinstance(model, Whole) else parts_of(model, ADAPTER)
    if shape and parts:
        twice = any(getattr(module, "gradient_checkpointing", False) for module in model.modules())
        return partial(_function, shape, *parts, twice)
    return partial(transformers_logprobs, model, casting)


def _function(
    shape: Shape, parameters: dict[str, Tensor], pairs: Pairs, twice: bool, seen: Padded, heat: float
) -> Tensor:
    weights = weights_of(shape, parameters, pairs)
    return logprobs(weights, seen.ids, seen.seen, seen.mask, heat, twice=twice)


def transformers_logprobs(
    model: Any, casting: Callable[[], AbstractContextManager[Any]], seen: Padded, heat: float
) -> Tensor:
    """Compute token log-probabilities [rows, T] with the transformers model at temperature ``heat``."""
    with casting():
        logits = model(input_ids=seen.ids, attention_mask=seen.seen, use_cache=False).logits
    return token_logprobs(logits, seen.ids, heat)
