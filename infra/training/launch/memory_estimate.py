"""What memory a training will need: said, and weighed against what a GPU has, before anything is loaded."""

from pathlib import Path

import torch

from agent0.errors import OperationError
from agent0.infra.engine.memory_need import MemoryNeed, as_function, gib, need, shape_of
from agent0.infra.training.batches import longest_of, paths_of, rows_of
from agent0.infra.training.launch.devices import check_device
from agent0.infra.training.launch.recipe import Recipe
from agent0.ports.training import TrainJob


def memory_need_of(
    folder: Path, job: TrainJob, recipe: Recipe, device: str, quantization: str, precision: str
) -> MemoryNeed:
    """Estimate the GPU memory that ``job`` needs at its largest step."""
    shape = shape_of(folder)
    samples = [*job.samples, *job.replay]
    tokens = longest_of(samples) if samples else 1
    rows = min(rows_of(tokens, shape.vocabulary, recipe.micro_batch), recipe.minibatch)
    setting = recipe.gradient_checkpointing
    checkpointing = setting == "on" or (setting == "auto" and device != "cpu")
    return need(
        shape,
        rank=recipe.rank,
        rows=rows,
        tokens=tokens,
        learned=max((sum(path.mask) for path in paths_of(samples)), default=1),
        precision=precision,
        quantized=bool(quantization),
        checkpointing=checkpointing,
        function=as_function(shape, precision, bool(quantization)),
    )


def check_room(folder: Path, job: TrainJob, recipe: Recipe, device: str, quantization: str, precision: str) -> str:
    """What ``job`` needs, in words, where the GPU has as much free.

    Raises:
        DependencyError: torch does not see it; OperationError: it has no room, with the setting to change.
    """
    check_device(device)
    estimate = memory_need_of(folder, job, recipe, device, quantization, precision)
    free, _ = torch.cuda.mem_get_info(device)
    return fit_or_refuse(estimate, float(free), device, quantization)


def fit_or_refuse(estimate: MemoryNeed, free: float, device: str, quantization: str) -> str:
    """Return a sentence such as ``training needs about 5.1 GiB (…) of 7.2 free on cuda``.

    Raises:
        OperationError: it needs more than there is.
    """
    sentence = f"training needs {estimate} of {gib(free)} free on {device}"
    if estimate.total > free:
        raise OperationError(
            "This training does not fit on the GPU.", f"It {sentence[9:]}.", _remedy(estimate, quantization)
        )
    return sentence


def _remedy(estimate: MemoryNeed, quantization: str) -> str:
    if estimate.activations + estimate.logits > estimate.weights:
        return "Set run.training.<role>.micro_batch = 1 and gradient_checkpointing = on; then lower max_tokens."
    if not quantization:
        return "Set run.<role>.quantization = 4bit, or choose a smaller model."
    return "Choose a smaller model, or end what else uses this GPU."
