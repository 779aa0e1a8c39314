"""Any local causal language model folder, through transformers, in a worker process: batched decoding with a KV cache,
LoRA adapters swapped by digest, log-probabilities and token ids."""

import asyncio
import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

from agent0.errors import ConfigError, DependencyError, OperationError
from agent0.events.values import Artifact, Turn, Usage
from agent0.infra.engine.adapter import check_base
from agent0.infra.engine.batching import Batcher
from agent0.infra.engine.memory_need import packed
from agent0.infra.engine.requests import TurnRequest, Written
from agent0.infra.engine.worker_process import Worker
from agent0.infra.weights.safetensors_io import digest
from agent0.ports.models import GenerateRequest, Generation, Likely, Model
from agent0.ports.storage import Artifacts

REQUIRED = ("config.json", "tokenizer.json", "tokenizer_config.json")
ENGINE = "agent0.infra.engine.inference:Engine"
PACKED = "agent0.infra.engine.formats.packed_engine:PackedEngine"
LARGE = 1 << 28
"""Bytes of weights from which a second copy of them counts: who does not need them gives them back."""
SHARED = 1 << 25
"""Bytes of weights from which threads share a product; of smaller ones they would wait for each other."""


class Transformers(Model):
    """The ``Model`` port over a folder of safetensors weights.

    Raises:
        DependencyError: the folder is missing or holds no such model.
    """

    def __init__(
        self,
        path: Path,
        artifacts: Artifacts,
        *,
        name: str,
        threads: int = 1,
        max_batch: int = 256,
        device: str = "cpu",
        quantization: str = "",
        precision: str = "auto",
        template: Mapping[str, object] | None = None,
        kept_mib: int = 512,
    ) -> None:
        check_folder(path)
        self.name, self._path, self._artifacts, self._device = name, path, artifacts, device
        options = {"path": str(path), "threads": threads, "precision": precision, "template": dict(template or {})}
        if packed(path, device, quantization, precision):
            target, options = PACKED, options | {"kept": kept_mib << 20}
        else:
            target, options = ENGINE, options | {"device": device, "quantization": quantization}
        self._worker = Worker(target, options, threads=threads, without=unused(path, quantization))
        self._batcher: Batcher[GenerateRequest, Generation] = Batcher(self._run, max_batch=max_batch)

    @property
    def pid(self) -> int | None:
        """The worker's process id, None before the first call."""
        return self._worker.pid

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one assistant turn; calls that arrive together share a batch."""
        size = sum(len(turn.content) for turn in request.turns)
        return await self._batcher.ask(request, key=request.adapter, group=request.group, size=size)

    async def likelihood(
        self, turns: Sequence[Turn], continuations: Sequence[str], adapter: Artifact | None = None
    ) -> Sequence[Likely]:
        """How likely each continuation is after ``turns`` (``agent0.ports.models.Likelihood``)."""
        name = await self._loaded(adapter)
        likelihoods: Sequence[Likely] = await self._worker.call("likelihood", tuple(turns), tuple(continuations), name)
        return likelihoods

    async def rest(self) -> None:
        """End the worker where its weights are large or on a GPU: the next call loads them again."""
        if is_large(self._path, self._device):
            async with self._batcher.paused():
                await self._worker.rest()

    async def close(self) -> None:
        """End the worker."""
        await self._batcher.close()
        await self._worker.close()

    async def _run(
        self, key: Hashable, fresh: Mapping[int, GenerateRequest], earlier: Sequence[int]
    ) -> Mapping[int, Generation | Exception]:
        adapter = await self._loaded(key if isinstance(key, Artifact) else None)
        requests = {n: TurnRequest(r.turns, r.sampling, r.tools, r.prefill, r.margins) for n, r in fresh.items()}
        written = await self._worker.call("advance", requests, earlier, adapter)
        return {number: self._generation(turn) for number, turn in written.items()}

    async def _loaded(self, adapter: Artifact | None) -> str:
        """The worker's name of ``adapter``, which it has loaded then."""
        if adapter is None:
            return ""
        if not await self._worker.call("has_adapter", adapter.sha256):
            data = self._artifacts.get(adapter)
            check_base(data, await asyncio.to_thread(digest, self._path))
            await self._worker.call("load_adapter", adapter.sha256, data)
        return adapter.sha256

    def _generation(self, written: Written) -> Generation | Exception:
        if written.error:
            return OperationError(written.error)
        usage = Usage(prompt_tokens=len(written.prompt), completion_tokens=len(written.ids), wall_s=written.wall_s)
        return Generation(
            text=written.text,
            token_ids=tuple(written.ids),
            logprobs=tuple(written.logprobs),
            prompt_ids=tuple(written.prompt),
            finish=written.finish,
            usage=usage,
            model=self.name,
            ends=tuple(written.ends),
            margins=tuple(written.margins),
        )


def is_large(path: Path, device: str) -> bool:
    """Whether two processes should not hold the weights in ``path`` at once: on a GPU never, else not if they are
    large."""
    return device != "cpu" or _bytes(path) >= LARGE


def threads_of(model: Path, device: str, setting: int) -> int:
    """Return how many threads compute ``model``, a folder or a GGUF file: ``setting``, or where that is 0 one for each
    processor that this process may use, and one for small weights or on a GPU."""
    shared = device == "cpu" and _bytes(model) >= SHARED
    return setting or (len(os.sched_getaffinity(0)) if shared else 1)


def _bytes(model: Path) -> int:
    files = model.glob("*.safetensors") if model.is_dir() else [model]
    return sum(file.stat().st_size for file in files)


def unused(path: Path, quantization: str) -> tuple[str, ...]:
    """Return the packages that a process of the model in ``path`` does without: bitsandbytes is for quantized weights
    only, and peft imports it wherever it is installed, which takes more than a second."""
    quantized = quantization or b"quantization_config" in (path / "config.json").read_bytes()
    return () if quantized else ("bitsandbytes",)


def check_folder(path: Path) -> None:
    """Raises DependencyError where ``path`` is not a folder of safetensors weights with a tokenizer."""
    missing = [name for name in REQUIRED if not (path / name).is_file()]
    if not missing and not any(path.glob("*.safetensors")):
        missing = ["*.safetensors"]
    if missing:
        raise DependencyError(
            f"The model in {path}",
            f"There is no {', no '.join(missing)} in that folder.",
            "Name a folder that a Hugging Face model was saved to (safetensors weights, with its tokenizer).",
        )


FOLDER = Path(__file__).parents[1] / "tiny"
BASE = FOLDER / "base"
PACKAGED = {"": BASE, "tools": BASE} | {name: FOLDER / name for name in ("climb", "climb_teacher", "long")}

FIX = "Choose one of them, or name a folder: --set run.<role>.provider=transformers --set run.<role>.model=FOLDER"


def packaged(name: str) -> Path:
    """The folder of a built-in model, by the course it was taught; the one that calls tools where ``name`` is empty.

    Raises:
        ConfigError: there is none of this name.
    """
    if name not in PACKAGED:
        names = ", ".join(filter(None, PACKAGED))
        raise ConfigError(f"There is no built-in model {name[:80]!r}.", f"Known: {names}.", FIX)
    return PACKAGED[name]


def tiny(artifacts: Artifacts, *, threads: int = 1, max_batch: int = 256, path: Path = BASE) -> Transformers:
    """A packaged model, or another one made by the same build at ``path``."""
    return Transformers(path, artifacts, name="tiny", threads=threads, max_batch=max_batch)
