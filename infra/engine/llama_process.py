"""A llama.cpp server in a process of its own, on a free loopback port. It ends when its standard input does, so it
never outlives whoever started it, however that ended.

It computes in float32 throughout (weights, cache), so that its log-probabilities are those that training computes.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from agent0.errors import DependencyError
from agent0.infra.engine.worker_process import environment_of

START_S = 120.0
"""Seconds in which a server must have loaded its model."""
LAST_WORDS = 300
"""Characters of the last line that a server wrote which did not start."""


@dataclass(frozen=True)
class LlamaOptions:
    """What a server is started with: GGUF files, tokens a slot (``window``), calls at once (``slots``), threads, and
    the key that it asks of whoever calls it. ``half_cache``: keys and values in half precision, llama.cpp's default."""

    model: str
    adapters: tuple[str, ...] = ()
    window: int = 1024
    slots: int = 1
    threads: int = 1
    key: str = ""
    half_cache: bool = False

    def line(self) -> bytes:
        """Encode the options as the line that the process reads first: the key stands in no list of processes."""
        return json.dumps(asdict(self)).encode() + b"\n"


class LlamaProcess:
    """A running llama.cpp server at the address ``url``, and its end."""

    def __init__(self, child: asyncio.subprocess.Process, url: str) -> None:
        self._child, self.url = child, url

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    @property
    def code(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._child.returncode

    async def has_ended(self, within_s: float) -> bool:
        """Whether it ends within so many seconds."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._child.wait(), within_s)
        return self.code is not None

    async def stop(self) -> None:
        """End it; it has nothing to save."""
        await _end(self._child)


async def start(options: LlamaOptions, log_file: Path) -> LlamaProcess:
    """Start a server; what it writes to stderr is added to the file ``log_file``.

    Raises:
        DependencyError: it does not start.
    """
    pipe = asyncio.subprocess.PIPE
    with log_file.open("ab") as errors:
        before = errors.tell()
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", __name__, stdin=pipe, stdout=pipe, stderr=errors, env=environment_of(options.threads)
        )
    try:
        url = await asyncio.wait_for(_address(child, options), START_S)
    except (OSError, TimeoutError):
        url = ""
    except BaseException:
        await _end(child)
        raise
    if not url:
        await _end(child)
        output = log_file.read_bytes()[before:].decode(errors="replace").strip()
        last = output.splitlines()[-1][-LAST_WORDS:] if output else "none"
        why = f"It did not start with {options.model}. Last words: {last}"
        raise DependencyError("llama.cpp's server", why, f"See {log_file}.")
    return LlamaProcess(child, url)


async def _address(child: asyncio.subprocess.Process, options: LlamaOptions) -> str:
    """The address that it tells once it has loaded its model; empty where it ends before."""
    assert child.stdin is not None and child.stdout is not None  # noqa: S101 - pipes
    child.stdin.write(options.line())
    await child.stdin.drain()
    async for line in child.stdout:
        if line.startswith(b"http://"):
            return line.decode().strip()
    return ""


async def _end(child: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.kill()
    await child.wait()
    if child.stdin:
        child.stdin.close()


def serve(options: LlamaOptions) -> None:
    """The child: serve until nobody holds its standard input any more."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.n_ctx, params.n_parallel, params.n_gpu_layers = options.window * options.slots, options.slots, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.warmup, params.fit_params, params.ui, params.verbosity = False, False, False, -1
    params.cache_ram_mib = 0  # prompts that a slot no longer holds are computed again
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    if not options.half_cache:
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    if options.key:
        params.api_keys = [options.key]
    params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(path, 1.0) for path in options.adapters]
    server = xllamacpp.Server(params)
    sys.stdout.write(f"\n{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    os._exit(0)  # nothing to be saved; its threads need not be waited for


def main() -> None:
    """Serve what the first line of standard input asks for."""
    for number in (signal.SIGINT, signal.SIGHUP):  # Ctrl-C and a closed terminal are the parent's to handle
        signal.signal(number, signal.SIG_IGN)
    options = json.loads(sys.stdin.buffer.readline())
    serve(LlamaOptions(**{**options, "adapters": tuple(options["adapters"])}))


if __name__ == "__main__":
    main()
