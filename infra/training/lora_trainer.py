"""Training of LoRA adapters in processes of their own, which end when they have been idle for a while."""

import asyncio
import json
from dataclasses import asdict, replace
from pathlib import Path

from agent0.errors import LogError, NotFoundError, OperationError
from agent0.events.base import sha256
from agent0.infra.engine.adapter import BASE, MEDIA, check_base
from agent0.infra.engine.worker_process import Worker
from agent0.infra.models.transformers import check_folder, is_large, unused
from agent0.infra.training.launch.process_group import Crew
from agent0.infra.training.progress import StepProgress, progress_file_name
from agent0.infra.weights.safetensors_io import digest
from agent0.ports.storage import Artifacts
from agent0.ports.training import Trainer, TrainingResult, TrainJob

OPTIMIZER_MEDIA = "application/vnd.agent0.optimizer"
IDLE_S = 120.0
SAVE_S = 10.0
"""Seconds between two savings of a training under way: what a kill costs at most."""


class LoraTrainer(Trainer):
    """The ``Trainer`` port over a folder of safetensors weights.

    ``TrainJob.settings``: those of ``engine_recipe.Recipe``, and ``processes``, one a GPU; unknown keys are ignored
    (they belong to whoever made the job). ``kept`` is a folder for what is half done: a training that was killed goes
    on there, and ends in the same adapter. It also says there how far it is (``pace_of``). After ``idle_s`` without a
    training the process ends; by default at once where its weights are large or on a GPU, since whoever generates next
    needs the memory.

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
        precision: str = "auto",
        kept: Path | None = None,
        every_s: float = SAVE_S,
    ) -> None:
        check_folder(path)
        self._path = path
        self._artifacts, self._kept, self._every_s = artifacts, kept, every_s
        self._idle_s = 0.0 if is_large(path, device) else IDLE_S
        self._threads, self._quantization = threads, quantization
        self._options = {"path": str(path), "threads": threads, "device": device}
        self._options |= {"quantization": quantization, "precision": precision}
        self._processes, self._worker = 1, self._open(1)
        self._progress_file: Path | None = None
        self._idle: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The worker's process id (of several: their launcher's), None where none runs."""
        return self._worker.pid

    async def train(self, job: TrainJob) -> TrainingResult:
        """Same job, same adapter (on one machine kind).

        Raises:
            OperationError: the parent is no adapter of this model, there is nothing to train on, or no room for it.
            TransientError: the process died.
        """
        self._stop_clock()
        await self._gather(int(job.settings.get("processes", 1)))
        base = await asyncio.to_thread(digest, self._path)
        parent = self._artifacts.get(job.parent) if job.parent else b""
        if parent:
            check_base(parent, base)
        job = replace(job, metadata={**job.metadata, BASE: base})
        kept = self._file(job)
        self._progress_file = (
            self._kept / progress_file_name(job.metadata.get("checkpoint", ""), job.seed) if self._kept else None
        )
        try:
            call = ("train_with_steps", job, parent, str(kept or ""), self._every_s, self._state_of(job))
            data, metrics, steps, state = await self._worker.call(*call)
            environment = await self._worker.call("environment")
        finally:
            if self._progress_file:
                self._progress_file.unlink(missing_ok=True)
            self._stop_clock()
            if self._idle_s:
                self._idle = asyncio.create_task(self._rest())
            else:
                await self._worker.rest()
        environment["base"] = base
        optimizer = self._artifacts.put(state, OPTIMIZER_MEDIA) if state else None
        result = TrainingResult(self._artifacts.put(data, MEDIA), metrics, environment, steps, optimizer)
        if kept:  # only now nothing of it is needed any more
            kept.unlink(missing_ok=True)
        return result

    def _state_of(self, job: TrainJob) -> bytes:
        """What the optimizer remembered of the parent; empty where nothing was recorded.

        Raises:
            OperationError: it is not in the store any more, or damaged.
        """
        try:
            return self._artifacts.get(job.optimizer) if job.optimizer else b""
        except (NotFoundError, LogError) as error:
            fix = "Copy artifacts/ of the machine that wrote it, or set run.training.<role>.optimizer_state = anew."
            raise OperationError("The optimizer's state of the parent cannot be read.", str(error), fix) from error

    def _open(self, processes: int) -> Worker:
        target, threads = "agent0.infra.training.loop:Training", self._threads
        if processes == 1:
            without = unused(self._path, self._quantization)
            return Worker(target, self._options, threads=threads, hear=self._write_progress, without=without)
        return Crew(target, self._options, processes=processes, threads=threads, hear=self._write_progress)

    async def _gather(self, processes: int) -> None:
        """As many processes as the job wants."""
        if processes != self._processes:
            await self._worker.close()
            self._processes, self._worker = processes, self._open(processes)

    def _write_progress(self, progress: StepProgress) -> None:
        """Write down how far it is; the file is whole or as it was."""
        if self._progress_file is None:
            return
        self._progress_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = self._progress_file.with_suffix(".part")
        partial.write_text(json.dumps(asdict(progress)))
        partial.replace(self._progress_file)

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

    def _stop_clock(self) -> None:
        if self._idle:
            self._idle.cancel()
            self._idle = None

    async def _rest(self) -> None:
        await asyncio.sleep(self._idle_s)
        await self._worker.rest()
