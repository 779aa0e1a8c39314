"""A real llama.cpp server in a process of its own, on a free loopback port, for tests that ask it without a run."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from agent0.infra.engine import llama_process
from agent0.infra.engine.llama_process import LlamaOptions

MISSING = "" if find_spec("xllamacpp") else "the wheel xllamacpp is not installed: it has none for this machine"
"""Why there is no such server here; empty where there is."""
START_S = 60


@contextmanager
def serving(model: Path, adapter: Path | None = None, *, half_cache: bool = False) -> Iterator[str]:
    """Its address. Keys and values are kept in float32 unless ``half_cache``, llama.cpp's own default."""
    options = LlamaOptions(str(model), (str(adapter),) if adapter else (), half_cache=half_cache)
    words = [sys.executable, "-m", llama_process.__name__]
    child = subprocess.Popen(words, cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(options.line())
        child.stdin.flush()
        told = next((line for line in child.stdout if line.startswith(b"http://")), b"").decode().strip()
        assert told, f"llama.cpp did not start with {model}"
        yield told
    finally:
        child.kill()
        child.wait(START_S)
        for stream in (child.stdin, child.stdout):
            if stream:
                stream.close()
