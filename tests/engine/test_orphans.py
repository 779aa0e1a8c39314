"""A worker whose parent was killed: it computes no further, and says nothing."""

import os
import subprocess
import sys
from pathlib import Path

PARENT = """
import asyncio
from agent0.infra.engine.worker_process import Worker

async def main():
    worker = Worker("threading:Event", {})
    asking = asyncio.create_task(worker.call("wait", 8))
    while worker.pid is None:
        await asyncio.sleep(0.01)
    print("asked", flush=True)
    await asking

asyncio.run(main())
"""


def test_a_worker_ends_with_its_parent_and_in_silence() -> None:
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == b"asked\n"
        parent.kill()
        _, said = parent.communicate(timeout=60)  # the worker holds the other end as long as it lives
    assert said == b""
