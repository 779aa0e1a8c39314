"""Part of the rim: a child process of an ablation study. It ends with its parent, and the end of its stderr is kept."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent0.infra.engine.worker_process import whole_environment

PATIENCE_S = 60.0
"""How long a process may take to stop cleanly."""


@asynccontextmanager
async def child(module: str, *arguments: str, output: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """``python -m module arguments``: what it writes to stderr is added to ``output``. It loads its settings as this
    process does, and needs the keys that they name. It learns from the end of its stdin that nobody waits any more;
    Ctrl-C reaches it through us alone."""
    command, pipe = (sys.executable, "-m", module, *arguments), asyncio.subprocess.PIPE
    with output.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=errors, start_new_session=True, env=whole_environment(1)
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), PATIENCE_S)
            except TimeoutError:
                process.kill()
                await process.wait()
        if process.stdin:
            process.stdin.close()


def size(output: Path) -> int:
    """Bytes there are; 0 where there is no such file."""
    return output.stat().st_size if output.exists() else 0


def last_words(output: Path, before: int, code: int) -> str:
    """The last thing that a failed process said (beyond ``before`` bytes), and where the rest is."""
    fresh = output.read_bytes()[before:].decode(errors="replace")
    lines = [line for line in fresh.splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if line.startswith("error: ")), lines[-1] if lines else "")
    ended = f"its process was killed by signal {-code}" if code < 0 else f"exit code {code}"
    return f"{last.removeprefix('error: ')[:500]} ({ended}; {output})".lstrip()
