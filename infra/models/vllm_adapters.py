"""Loads adapters into a vLLM server while it runs, and proves that the one that was asked for answers.

vLLM takes them at ``/v1/load_lora_adapter`` where it was started with ``--enable-lora`` and with
``VLLM_ALLOW_RUNTIME_LORA_UPDATING=1`` in its environment. It reads the files itself, so they lie in a folder that it
sees under the same path; a request then names the adapter as its model. It reads them again whenever it has had room
for others in between (``--max-cpu-loras``), and ends where they are gone.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from agent0.errors import DependencyError, OperationError, OtherServerError, TransientError
from agent0.events.values import Artifact
from agent0.infra.engine.adapter import CONFIG, WEIGHTS, check_base, files
from agent0.infra.models.openai.dialects import ListedModel
from agent0.infra.models.weights_probe import (
    COPY_NATS,
    PROBED_TURNS,
    TOGETHER,
    GreedyText,
    WeightsReading,
)
from agent0.infra.weights.merge import Lora, read_lora, write_trial
from agent0.infra.weights.safetensors_io import digest
from agent0.ports.storage import Artifacts

TRIAL = "agent0-trial"
KEPT = 4
"""Adapters that the server is left with: those of both roles, of a candidate, and one to spare."""

Ask = Callable[[str, str, Any], Awaitable[Any]]
"""Method, path and body to the answer."""
Probe = Callable[[str], Awaitable[GreedyText]]
"""The name of a model to what it greedily writes to a fixed question."""
Readings = dict[str, WeightsReading]
"""By address and model: what it wrote at first."""
_at_start: Readings = {}
"""Of the newest check of a server in this process: what is opened later goes on from that."""


class VllmAdapters:
    """The adapters of the server at ``address`` over the weights in ``folder``, which it serves as ``model``. Their
    files are written to ``shared``; ``cards`` asks for all models that it has, by name, as it describes them."""

    def __init__(
        self,
        ask: Ask,
        cards: Callable[[], Awaitable[Mapping[str, ListedModel]]],
        probe: Probe,
        artifacts: Artifacts,
        folder: Path,
        shared: Path,
        weights: Readings,
        *,
        model: str,
        address: str,
    ) -> None:
        """``weights`` has what was read at first of this server and of its copies, and is shared with those."""
        self._ask, self._cards, self._probe, self._artifacts = ask, cards, probe, artifacts
        self._model, self._folder, self._shared = model, folder, shared
        self._entry, self._busy, self._weights = asyncio.Lock(), Counter[str](), weights
        self._key, self._suffix, self._unread = f"{address} {model}", f" {model}", 0
        self._proven: dict[str, GreedyText] = {}

    @asynccontextmanager
    async def using(self, adapter: Artifact | None) -> AsyncIterator[dict[str, object]]:
        """Hold ``adapter`` on the server, None being its own weights, which are read again every ``PROBED_TURNS`` turns
        and after a failure; yields what a request says for it to answer.

        Raises:
            DependencyError: the server takes no adapters, cannot read this one, answers as if it had none, or has other
                weights than before.
            TransientError: it lost the adapter while this was held.
            OperationError: ``adapter`` is no LoRA of these weights.
        """
        async with self._entry:
            if not self._unread:
                await self._base_text()
            self._unread -= 1
        try:
            async with self._loaded(adapter) as fields:
                yield fields
        except BaseException:
            self._unread = 0
            raise

    @asynccontextmanager
    async def _loaded(self, adapter: Artifact | None) -> AsyncIterator[dict[str, object]]:
        if adapter is None:
            yield {}
            return
        name = f"agent0-{adapter.sha256}"
        async with self._entry:
            path = self._shared / adapter.sha256
            if name not in self._proven or not path.is_dir() or await self._loaded_path(name) != str(path):
                await self._load(name, adapter)
            self._proven[name] = self._proven.pop(name)  # the last used comes last
            self._busy[name] += 1
        try:
            yield {"model": name}
            if await self._loaded_path(name) != str(path):
                why = "Who wrote the answer is not known, so it is not learned from."
                raise TransientError(f"The server lost adapter {adapter.sha256[:12]} in the middle of a call.", why)
        finally:
            self._busy[name] -= 1

    async def check(self, rank: int) -> None:
        """Read the server's weights; with a ``rank`` load a small adapter of that with drawn weights, ask it, and take
        it away again: what training makes will be served, too.

        Raises:
            DependencyError: as ``using``.
        """
        _at_start.pop(self._key, None)
        self._weights.pop(self._key, None)
        await self._base_text()
        _at_start[self._key] = self._weights[self._key]
        if not rank:
            return
        self._shared.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._shared, prefix="trial-") as folder:
            path = Path(folder)
            path.chmod(0o755)  # the server may be another user's
            await asyncio.to_thread(write_trial, self._folder, path, rank)
            try:
                await self._load_from(path, TRIAL, rank, silent=False)
            finally:
                self._proven.pop(TRIAL, None)
                with suppress(OperationError, DependencyError, TransientError):
                    await self._ask("POST", "/v1/unload_lora_adapter", {"lora_name": TRIAL})

    async def _load(self, name: str, adapter: Artifact) -> None:
        lora, path = await asyncio.to_thread(self._written, adapter)
        rank = max(a.shape[0] for a, _ in lora.pairs.values())
        await self._load_from(path, name, rank, silent=not any(b.any() for _, b in lora.pairs.values()))

    async def _load_from(self, path: Path, name: str, rank: int, *, silent: bool) -> None:
        """Have the server load ``path`` as ``name``. One that is not ``silent`` changes what is written."""
        loaded = await self._loaded_path(name)
        if loaded != str(path):
            await self._make_room()
            try:
                if loaded is not None:  # another run's, or that of a data folder that was moved
                    await self._ask("POST", "/v1/unload_lora_adapter", {"lora_name": name})
                await self._ask("POST", "/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(path)})
            except (OperationError, OtherServerError, TransientError) as error:
                raise self._missing(name, f"It did not load {path}. {error.why}", rank) from error
        self._proven.pop(name, None)
        base, probed = await self._base_text(), await self._probe(name)
        same = [other for other, values in {self._model: base, **self._proven}.items() if values == probed]
        if same and not silent:
            raise self._missing(name, f"It says that it has it, and answers exactly as {same[0]}.", rank)
        self._proven[name] = probed

    async def _base_text(self) -> GreedyText:
        """What the server's own weights write, which must be those of the start, and of its copies."""
        if self._key not in self._weights and self._key in _at_start:
            self._weights[self._key] = _at_start[self._key]
        text = await self._probe(self._model)
        if reading := self._weights.get(self._key):
            other = reading.differs([text]) and reading.differs(await self._read_together())
        else:
            reading = WeightsReading([text, *await self._read_together()])
            copies = [copy for key, copy in self._weights.items() if key.endswith(self._suffix)]
            other = any(copy.differs(reading.texts, COPY_NATS) for copy in copies)
        if other:
            why = f"{self._model} does not write with the log-probabilities of when it was asked first."
            fix = "Start it, and its copies, with the same."
            raise DependencyError("A server with the weights of before", why, fix)
        self._weights[self._key], self._unread = reading, PROBED_TURNS
        return text

    async def _read_together(self) -> list[GreedyText]:
        return await asyncio.gather(*(self._probe(self._model) for _ in range(TOGETHER)))

    async def _loaded_path(self, name: str) -> str | None:
        """The folder that the server reads the adapter ``name`` from; None where it does not have it."""
        card = (await self._cards()).get(name)
        return None if card is None else card.root

    async def _make_room(self) -> None:
        """Unload what was used longest ago and is not in use; one that the server lost is no error."""
        idle = [name for name in self._proven if not self._busy[name]]
        for name in idle[: max(0, len(self._proven) - KEPT + 1)]:
            del self._proven[name]
            try:
                await self._ask("POST", "/v1/unload_lora_adapter", {"lora_name": name})
            except OperationError:
                continue

    def _written(self, adapter: Artifact) -> tuple[Lora, Path]:
        """The adapter, and the folder of its files, which are there as a whole or not at all."""
        data = self._artifacts.get(adapter)
        check_base(data, digest(self._folder))
        lora, path = read_lora(data), self._shared / adapter.sha256
        if not path.is_dir():
            self._shared.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._shared) as folder:
                fresh = Path(folder) / "adapter"
                fresh.mkdir()
                for name in (CONFIG, WEIGHTS):
                    (fresh / name).write_bytes(files(data)[name])
                try:
                    fresh.rename(path)
                except OSError:  # another server's, or process', were written meanwhile
                    if not path.is_dir():
                        raise
        return lora, path

    def _missing(self, name: str, why: str, rank: int) -> DependencyError:
        start = f"VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 vllm serve ... --enable-lora --max-lora-rank {rank} (or more)"
        fix = f"Start it with {start}, where it can read {self._shared}."
        what = f"An adapter of rank {rank}" if name == TRIAL else f"The adapter {name.removeprefix('agent0-')[:12]}"
        return DependencyError(f"{what} on its server", why, fix)
