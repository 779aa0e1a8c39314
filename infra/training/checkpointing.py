"""A training half done, on disk: weights, the optimizers' memory, counts and steps, so that a killed one goes on.

What is restored is exactly what was, so a training that was killed at any step ends in the same adapter.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch.optim import Optimizer

from agent0.events.values import TrainingStep
from agent0.infra.training.optimizer_state import put_back, tensors_of, trainable


@dataclass
class HalfDone:
    """Where one job's training stands. ``path`` None: nothing is kept."""

    path: Path | None
    job: str
    every_s: float
    _last: float = 0.0

    def save_now(self) -> bool:
        """Whether ``every_s`` seconds have passed since the last save."""
        return self.path is not None and monotonic() - self._last >= self.every_s

    def save(
        self,
        model: Any,
        optimizers: Sequence[Optimizer],
        done: int,
        counts: Mapping[str, float],
        steps: Sequence[TrainingStep],
    ) -> None:
        """Keep the state after ``done`` steps; the file is whole or not there."""
        if self.path is None:
            return
        self._last = monotonic()
        tensors = tensors_of(model, optimizers)
        for index, parameter in enumerate(trainable(model)):
            tensors[f"{index}.weight"] = parameter.detach().cpu().contiguous().clone()
        note = {"job": self.job, "done": str(done), "counts": json.dumps(dict(counts))}
        note["steps"] = json.dumps([step.model_dump() for step in steps])
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = self.path.with_suffix(f".{os.getpid()}")
        save_file(tensors, partial, metadata=note)
        partial.replace(self.path)

    def restore(self, model: Any, optimizers: Sequence[Optimizer]) -> tuple[int, dict[str, float], list[TrainingStep]]:
        """(steps done, counts, steps) of what was kept, put back into model and optimizers; (0, {}, []) where there is
        nothing of this job, or nothing that fits."""
        self._last = monotonic()
        if self.path is None or not self.path.is_file():
            return 0, {}, []
        try:
            with safe_open(self.path, "pt") as kept:
                note = kept.metadata() or {}
                if note.get("job") != self.job or "steps" not in note:
                    return 0, {}, []
                tensors = {name: kept.get_tensor(name) for name in kept.keys()}  # noqa: SIM118 (no mapping)
        except (SafetensorError, OSError):
            return 0, {}, []
        with torch.no_grad():
            for index, parameter in enumerate(trainable(model)):
                parameter.copy_(tensors[f"{index}.weight"])
        put_back(model, optimizers, tensors)
        counts = {name: float(value) for name, value in json.loads(note["counts"]).items()}
        return int(note["done"]), counts, [TrainingStep(**step) for step in json.loads(note["steps"])]
