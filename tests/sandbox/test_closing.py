"""Ending a zygote gives everything back, whoever stops waiting for that."""

import asyncio

import pytest

from agent0.ports.sandbox import SandboxCall
from infra.sandbox.backends.zygote import Zygote
from tests.sandbox.opened import LEAN, open_lean

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_cancelled_close_keeps_no_descriptor() -> None:
    zygote = await Zygote.start(LEAN)
    closing = asyncio.create_task(zygote.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    assert {one.fileno() for one in (zygote._control, *(n.control for n in zygote._nurseries))} == {-1}
    await zygote.close()
    assert zygote._process.returncode is not None


async def test_a_retired_zygote_ends_with_its_sandbox() -> None:
    opened = await open_lean()
    lane = opened._lanes[0]
    zygote = await lane.zygote()
    slow = asyncio.create_task(opened.call(SandboxCall("python", "import time; time.sleep(60)", wall_s=60, root=LEAN)))
    while zygote.idle.is_set():
        await asyncio.sleep(0.01)
    lane._retire(zygote)
    await opened.close()
    assert (zygote._control.fileno(), zygote._process.returncode is None) == (-1, False)
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)
