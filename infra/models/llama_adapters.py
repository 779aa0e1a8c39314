"""Which of the adapters that a llama.cpp server has loaded is a checkpoint's, proven by the digest of its file.

llama.cpp loads adapters when it starts and scales them for each request. The file that Agent0 exports of an adapter
always has the same bytes, so its digest says which adapter answers, whatever the file is called.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agent0.errors import DependencyError
from agent0.events.values import Artifact
from agent0.infra.engine.adapter import check_base
from agent0.infra.storage.files import file_digest, known_digest
from agent0.infra.weights.gguf import write_adapter
from agent0.infra.weights.merge import read_lora
from agent0.infra.weights.safetensors_io import digest
from agent0.ports.storage import Artifacts

Scales = tuple[tuple[int, float], ...]


class LlamaAdapters:
    """The adapters of one server over the weights in ``folder``; ``loaded`` asks the server for its list, once where
    that is ``fixed``: another server may be started at the same address with other adapters."""

    def __init__(
        self, loaded: Callable[[], Awaitable[Any]], artifacts: Artifacts, folder: Path, url: str, *, fixed: bool = False
    ) -> None:
        self._loaded, self._artifacts, self._folder, self._url = loaded, artifacts, folder, url
        self._fixed, self._found = fixed, dict[Artifact | None, Scales]()
        self._exported: dict[str, str] = {}

    @asynccontextmanager
    async def using(self, adapter: Artifact | None) -> AsyncIterator[dict[str, object]]:
        """Yield what a request says for ``adapter`` alone to answer; errors as for ``scales``."""
        scales = await self.scales(adapter)
        yield {"lora": [{"id": key, "scale": scale} for key, scale in scales]} if scales else {}

    async def scales(self, adapter: Artifact | None) -> Scales:
        """Return (id, scale) of every adapter that the server has: 1 for ``adapter``, 0 for the others.

        Raises:
            DependencyError: the server does not have ``adapter``, or its files are not on this machine.
            OperationError: ``adapter`` is no LoRA of these weights.
        """
        if adapter not in self._found or not self._fixed:
            self._found[adapter] = await self._scales(adapter)
        return self._found[adapter]

    async def _scales(self, adapter: Artifact | None) -> Scales:
        there = {int(entry["id"]): Path(str(entry["path"])) for entry in await self._loaded()}
        if adapter is None:
            return tuple((key, 0.0) for key in there)
        digest = await asyncio.to_thread(self._digest, adapter)
        chosen = next((key for key, path in there.items() if path.is_file() and known_digest(path) == digest), None)
        if chosen is None:
            where = f"The server at {self._url} has {', '.join(map(str, there.values())) or 'no adapter'}."
            fix = (
                f"agent0 model export {adapter.sha256[:12]} --out FOLDER, then start llama-server again "
                "with one more --lora FOLDER/adapter.gguf."
            )
            raise DependencyError(f"The adapter {adapter.sha256[:12]} on its server", where, fix)
        return tuple((key, float(key == chosen)) for key in there)

    def _digest(self, adapter: Artifact) -> str:
        """Of the file that ``agent0 model export`` writes of ``adapter``."""
        if adapter.sha256 not in self._exported:
            data = self._artifacts.get(adapter)
            check_base(data, digest(self._folder))
            with tempfile.TemporaryDirectory() as folder:
                write_adapter(read_lora(data), self._folder, Path(folder) / "adapter.gguf")
                self._exported[adapter.sha256] = file_digest(Path(folder) / "adapter.gguf")
        return self._exported[adapter.sha256]
