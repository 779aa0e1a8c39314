"""A model served over HTTP by a llama.cpp process that a run starts, owns and ends: that of a folder, exported in
float32, or that of a GGUF file as it is. Adapters of a file are trained on its weights as they are dequantised; of a
kind of file that cannot be, the server uses its own tokenizer and chat template, and it takes no adapter.

llama.cpp loads adapters only when it starts. So a request for one that the process does not have waits until the calls
under way are done, and then a new process is started with it. The exported files are kept by digest.
"""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from agent0.errors import DependencyError, RefusedError, TransientError
from agent0.events.values import Artifact
from agent0.infra.engine.adapter import check_base
from agent0.infra.engine.llama_process import LlamaOptions, LlamaProcess, start
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.infra.models.transformers import check_folder
from agent0.infra.storage.files import whole_file
from agent0.infra.weights.dequantise import dequantised, text_folder, unusable
from agent0.infra.weights.gguf import write_adapter, write_base
from agent0.infra.weights.gguf_header import is_gguf
from agent0.infra.weights.merge import read_lora
from agent0.infra.weights.model_config import ModelKind
from agent0.infra.weights.safetensors_io import digest
from agent0.ports.models import GenerateRequest, Generation
from agent0.ports.storage import Artifacts
from agent0.settings import ActorConfig

LOADED = 4
"""Adapters that a process has at once: those of both roles, of a candidate, and one to spare."""
ENDED_S = 1.0
"""Seconds that a process which was killed may take to be seen as ended."""
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


class LlamaCpp:
    """The ``Model`` port on the ``model`` of a folder or a GGUF file; what is made of a folder is under ``cache``.

    The process starts at the first call, and again where it died. Calls that need another adapter wait for those under
    way. Nobody else can ask it: it listens on the loopback interface and wants a key of its own.
    """

    streams = True

    def __init__(self, model: Path, artifacts: Artifacts, actor: ActorConfig, *, cache: Path, threads: int) -> None:
        self._is_file = is_gguf(model)
        if not self._is_file:
            check_folder(model)
        self.name = f"llama.cpp/{model.name}"
        self._path, self._artifacts, self._actor = model, artifacts, actor
        self._cache, self._threads = cache, threads
        self._process: LlamaProcess | None = None
        self._server: OpenAIServer | None = None
        self._adapters: dict[str, Path] = {}
        self._entry, self._idle, self._calls = asyncio.Lock(), asyncio.Event(), 0
        self._idle.set()

    @property
    def pid(self) -> int | None:
        """The server's process id, None where none runs."""
        return self._process.pid if self._process and self._process.code is None else None

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one turn.

        Raises:
            DependencyError: the server does not start.
            TransientError: it ended in the middle of the call; the next call starts another.
            OperationError: it cannot do what is asked, or the adapter is no LoRA of these weights.
        """
        if request.adapter and self._is_file and (why := await asyncio.to_thread(unusable, self._path)):
            raise RefusedError(f"{self.name} takes no adapter.", why, "Set run.<role>.model to a folder of weights.")
        async with self._served(request.adapter) as (server, process):
            try:
                return replace(await server.generate(request), model=self.name)
            except (DependencyError, TransientError) as error:
                if not await process.has_ended(ENDED_S):
                    raise
                why = f"Exit status {process.code}."
                fix = "The call is tried again on a new one."
                raise TransientError("llama.cpp's server ended in the middle of a call.", why, fix) from error

    async def rest(self) -> None:
        """End the process once its calls are done, so that training has its memory."""
        async with self._entry:
            await self._idle.wait()
            await self._end()

    async def close(self) -> None:
        """End the process; calls under way fail."""
        await self._end()

    @asynccontextmanager
    async def _served(self, adapter: Artifact | None) -> AsyncIterator[tuple[OpenAIServer, LlamaProcess]]:
        """A server that has ``adapter``; it stays as long as this is held."""
        async with self._entry:
            if self.pid is None or (adapter and adapter.sha256 not in self._adapters):
                await self._idle.wait()
                await self._start(adapter)
            if adapter:
                self._adapters[adapter.sha256] = self._adapters.pop(adapter.sha256)  # the last used comes last
            assert self._server and self._process  # noqa: S101 - just started
            pair = self._server, self._process
            self._calls += 1
            self._idle.clear()
        try:
            yield pair
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def _start(self, adapter: Artifact | None) -> None:
        """Start a process with ``adapter`` and those that were used last, in the place of the one there is."""
        base, adapters = await asyncio.to_thread(self._base), dict(self._adapters)
        folder = self._cache if self._is_file else base.parent
        if adapter and adapter.sha256 not in adapters:
            adapters[adapter.sha256] = await asyncio.to_thread(self._exported, adapter, folder)
        adapters = dict(list(adapters.items())[-LOADED:])
        await self._end()
        key, paths = secrets.token_hex(16), tuple(map(str, adapters.values()))
        options = LlamaOptions(
            str(base), paths, self._window(), self._actor.parallel, self._threads, key, half_cache=self._is_file
        )
        try:
            self._process = await start(options, folder / "server.log")
        except DependencyError as error:
            why = await asyncio.to_thread(unusable, self._path) if self._is_file else ""
            raise DependencyError("llama.cpp's server", f"{error.why} {why}".strip(), error.fix) from None
        url, silent_s = f"{self._process.url}/v1", self._actor.timeout_s
        # an end would be seen; it is silent while it reads the long prompt of another call
        overrides = {"base_url": url, "silent_s": silent_s, "model": "", "key_env": ""}
        overrides["tokenizer"] = await asyncio.to_thread(self._tokenizer)
        self._server = OpenAIServer(self._actor.model_copy(update=overrides), self._artifacts, key)
        self._adapters = adapters

    async def _end(self) -> None:
        process, server = self._process, self._server
        self._process = self._server = None
        if server:
            await server.close()
        if process:
            await process.stop()

    def _window(self) -> int:
        if self._is_file:
            return self._actor.num_ctx
        return min(self._actor.num_ctx, ModelKind.of_folder(self._path).max_position_embeddings or self._actor.num_ctx)

    def _base(self) -> Path:
        """The base as GGUF: the file itself, or one in a folder named after what it is made of."""
        if self._is_file:
            self._cache.mkdir(parents=True, exist_ok=True)
            return self._path
        folder = self._cache / made_of(self._path)
        folder.mkdir(parents=True, exist_ok=True)
        out = folder / "base.gguf"
        if not out.is_file():
            with whole_file(out) as path:
                write_base(self._path, path)
        return out

    def _tokenizer(self) -> str:
        """The folder of tokenizer and chat template; empty where the server's own are used."""
        if not self._is_file:
            return str(self._path)
        return "" if unusable(self._path) else str(text_folder(self._path))

    def _exported(self, adapter: Artifact, folder: Path) -> Path:
        out = folder / f"{adapter.sha256}.gguf"
        if not out.is_file():
            data, base = self._artifacts.get(adapter), dequantised(self._path) if self._is_file else self._path
            check_base(data, digest(base))
            with whole_file(out) as path:
                write_adapter(read_lora(data), base, path)
        return out


def made_of(folder: Path) -> str:
    """Return the sha256 of everything that a GGUF file is made of: weights, configuration, tokenizer and template."""
    sha = hashlib.sha256(digest(folder).encode())
    for name in FILES:
        path = folder / name
        sha.update(f"\n{name} ".encode() + (path.read_bytes() if path.is_file() else b""))
    return sha.hexdigest()
