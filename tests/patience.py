"""How long a test waits for what must come: a property of tests alone, so generous that a busy or slow machine is no
defect. A test that has to wait so long fails; none that passes does."""

import asyncio
import time
from collections.abc import Callable

PATIENCE_S = 600.0


async def until(holds: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait for ``holds``; look every 20 ms."""
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline, f"waited {patience_s:.0f} s for {what}"
        await asyncio.sleep(0.02)
