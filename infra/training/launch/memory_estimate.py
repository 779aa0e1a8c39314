"""What memory a training will need: said, and weighed against what a GPU has, before anything is loaded."""

from pathlib import Path

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
    asked = recipe.gradient_checkpointing
    checkpointing = asked == "on" or (asked == "auto" and device != "cpu")
    return need(
        shape,
        rank=recipe.rank,
        rows=rows,
        tokens=tokens,
        own=max((sum(path.mask) for path in paths_of(samples)), default=1),
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
    import torch

    check_device(device)
    found = memory_need_of(folder, job, recipe, device, quantization, precision)
    free, _ = torch.cuda.mem_get_info(device)
    return fit_or_refuse(found, float(free), device, quantization)


def fit_or_refuse(found: MemoryNeed, free: float, device: str, quantization: str) -> str:
    """Return a sentence such as ``training needs about 5.1 GiB (…) of 7.2 free on cuda``.

    Raises:
        OperationError: it needs more than there is.
    """
    sentence = f"training needs {found} of {gib(free)} free on {device}"
    if found.total > free:
        raise OperationError(
            "This training does not fit on the GPU.", f"It {sentence[9:]}.", _remedy(found, quantization)
        )
    return sentence


def _remedy(found: MemoryNeed, quantization: str) -> str:
    if found.activations + found.logits > found.weights:
        return "Set run.training.<role>.micro_batch = 1 and gradient_checkpointing = on; then lower max_tokens."
    if not quantization:
        return "Set run.<role>.quantization = 4bit, or choose a smaller model."
    return "Choose a smaller model, or end what else uses this GPU."
