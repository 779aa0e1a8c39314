"""Coroutines that Python calls started in the background, when their process ends."""

import subprocess
import sys

DRAINS = """
import asyncio
from agent0.assembly.api.calls import Background

async def work():
    try:
        begun.set_result(None)
        await asyncio.sleep(3600)
    finally:
        await asyncio.to_thread(print, "drained")

from concurrent.futures import Future
begun = Future()
Background(work).start()
begun.result()
"""


def test_what_runs_drains_with_its_threads_when_a_process_ends() -> None:
    done = subprocess.run([sys.executable, "-c", DRAINS], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("drained\n", "")
