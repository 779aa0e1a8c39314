"""Training of LoRA adapters in a process of its own, which ends when it has been idle for a while."""

import asyncio
import json
from pathlib import Path
from typing import Any

from agent0.ports import Artifacts, Trained, Trainer, TrainJob
from events.base import sha256
from infra.models.engine_adapter import MEDIA
from infra.models.engine_worker import Worker
from infra.models.transformers import check_folder
from infra.weights import digest

IDLE_S = 120.0
SAVE_S = 10.0
"""Seconds between two savings of a training under way: what a kill costs at most."""


class LoraTrainer(Trainer):
    """The ``Trainer`` port over a folder of safetensors weights.

    ``TrainJob.settings``: lr, rank, alpha, epochs, minibatch, replay_steps, weight_decay, clip_low, temperature;
    unknown keys are ignored (they belong to whoever made the job). ``kept`` is a folder for what is half done: a
    training that was killed goes on there, and ends in the same adapter.

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
        kept: Path | None = None,
        every_s: float = SAVE_S,
    ) -> None:
        check_folder(path)
        self._path, self._digest = path, ""
        self._artifacts, self._idle_s, self._kept, self._every_s = artifacts, idle_s, kept, every_s
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
            kept = self._file(job)
            data, metrics = await self._worker.call("train", job, parent, str(kept or ""), self._every_s)
            environment = await self._worker.call("environment")
        finally:
            self._stop_clock()
            self._idle = asyncio.create_task(self._rest())
        environment["base"] = await self._base()
        made = Trained(self._artifacts.put(data, MEDIA), metrics, environment)
        if kept:  # only now nothing of it is needed any more
            kept.unlink(missing_ok=True)
        return made

    def _file(self, job: TrainJob) -> Path | None:
        """Where a training of this name and seed is kept while it is half done; its content says of which job."""
        if self._kept is None:
            return None
        name = sha256(json.dumps([dict(job.metadata), job.seed], sort_keys=True))[:32]
        return self._kept / f"{name}.safetensors"

    async def close(self) -> None:
        """End the worker."""
        self._stop_clock()
        await self._worker.close()

    async def _base(self) -> str:
        """The digest of the weights that are trained on: no other base may serve with the adapter."""
        if not self._digest:
            self._digest = await asyncio.to_thread(digest, self._path)
        return self._digest

    def _stop_clock(self) -> None:
        if self._idle:
            self._idle.cancel()
            self._idle = None

    async def _rest(self) -> None:
        await asyncio.sleep(self._idle_s)
        await self._worker.rest()
