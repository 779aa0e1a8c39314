"""Training of LoRA adapters in a process of its own, which ends when it has been idle for a while."""

import asyncio
from pathlib import Path
from typing import Any

from agent0.ports import Artifacts, Trained, Trainer, TrainJob
from infra.models.engine_adapter import MEDIA
from infra.models.engine_worker import Worker
from infra.models.transformers import check_folder

IDLE_S = 120.0


class LoraTrainer(Trainer):
    """The ``Trainer`` port over a folder of safetensors weights.

    ``TrainJob.settings``: lr, rank, alpha, epochs, minibatch, replay_steps, weight_decay, clip_low, temperature;
    unknown keys are ignored (they belong to whoever made the job).

    Raises:
        DependencyError: the folder is missing or holds no such model.
    """

    def __init__(
        self,
        path: Path,
        artifacts: Artifacts,
        *,
        threads: int = 1,
        device: str = "cpu",
        quantization: str = "",
        idle_s: float = IDLE_S,
    ) -> None:
        check_folder(path)
        self._artifacts, self._idle_s = artifacts, idle_s
        options: dict[str, Any] = {"path": str(path), "threads": threads, "device": device}
        self._worker = Worker(
            "infra.models.engine_training:Training", {**options, "quantization": quantization}, threads=threads
        )
        self._idle: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The worker's process id, None where none runs."""
        return self._worker.pid

    async def train(self, job: TrainJob) -> Trained:
        """Same job, same adapter (on one machine kind).

        Raises:
            OperationError: the parent is no adapter of this model, or there is nothing to train on.
            TransientError: the process died.
        """
        self._stop_clock()
        parent = self._artifacts.get(job.parent) if job.parent else b""
        try:
            data, metrics = await self._worker.call("train", job, parent)
            environment = await self._worker.call("environment")
        finally:
            self._stop_clock()
            self._idle = asyncio.create_task(self._rest())
        return Trained(self._artifacts.put(data, MEDIA), metrics, environment)

    async def close(self) -> None:
        """End the worker."""
        self._stop_clock()
        await self._worker.close()

    def _stop_clock(self) -> None:
        if self._idle:
            self._idle.cancel()
            self._idle = None

    async def _rest(self) -> None:
        await asyncio.sleep(self._idle_s)
        await self._worker.rest()
