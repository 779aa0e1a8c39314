"""A real llama.cpp server in a process of its own, on a free loopback port: ``python -m tests.llama_server MODEL
[ADAPTER]`` prints its address and ends when its standard input does."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

MISSING = "" if find_spec("xllamacpp") else "the wheel xllamacpp is not installed: it has none for this machine"
"""Why there is no such server here; empty where there is."""
START_S = 60


@contextmanager
def serving(model: Path, adapter: Path | None = None, *, half_cache: bool = False) -> Iterator[str]:
    """Its address. Keys and values are kept in float32 unless ``half_cache``, llama.cpp's own default."""
    words = [sys.executable, "-m", __name__, str(model), str(adapter or ""), "half" if half_cache else "full"]
    child = subprocess.Popen(words, cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        told = next((line for line in child.stdout if line.startswith(b"http://")), b"").decode().strip()
        assert told, f"llama.cpp did not start with {model}"
        yield told
    finally:
        child.kill()
        child.wait(START_S)
        for stream in (child.stdin, child.stdout):
            if stream:
                stream.close()


def main(model: str, adapter: str, cache: str) -> None:
    """Serve until nobody listens any more."""
    import xllamacpp

    wanted = xllamacpp.CommonParams()
    wanted.model.path = model
    wanted.n_ctx, wanted.n_parallel, wanted.n_gpu_layers = 1024, 1, 0
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
    wanted.warmup, wanted.fit_params, wanted.verbosity = False, False, -1
    wanted.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    if cache == "full":
        wanted.cache_type_k = wanted.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    if adapter:
        wanted.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(adapter, 1.0)]
    server = xllamacpp.Server(wanted)
    sys.stdout.write(f"\n{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # nothing to be saved; its threads need not be waited for


if __name__ == "__main__":
    main(*sys.argv[1:])
