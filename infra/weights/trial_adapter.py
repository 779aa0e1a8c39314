"""A small adapter with drawn weights: to see whether a server takes one, before any is trained."""

import json
from pathlib import Path

import numpy as np

from agent0.infra.engine.adapter import CONFIG, LORA, WEIGHTS, lora_settings
from agent0.infra.weights.merge import PREFIX
from agent0.infra.weights.safetensors_io import Weights, write

QUERIES = "q_proj"


def write_trial(folder: Path, out: Path, rank: int) -> None:
    """Write an adapter of the first layer's queries of the model in ``folder`` to ``out``, by peft's names. Its weights
    are large, so that it has opinions."""
    base = Weights.of_folder(folder)
    weight = min(name for name in base if name.endswith(f".{QUERIES}.weight"))
    rows, columns = base.shape(weight)
    module, rng = PREFIX + weight.removesuffix(".weight"), np.random.default_rng(0)
    shapes = {f"{module}.lora_A.weight": (rank, columns), f"{module}.lora_B.weight": (rows, rank)}
    write(out / WEIGHTS, shapes, lambda name: rng.normal(0, 1, shapes[name]).astype(np.float32), "F32")
    settings = {"peft_type": LORA, "task_type": "CAUSAL_LM", **lora_settings(rank, 2 * rank)}
    (out / CONFIG).write_text(json.dumps(settings | {"target_modules": [QUERIES]}), encoding="utf-8")
