"""Ending a zygote gives everything back, whoever stops waiting for that."""

import asyncio

import pytest

from agent0.ports import SandboxCall
from infra.sandbox import rootfs
from infra.sandbox.zygote import Zygote
from tests.sandbox.opened import open_bubblewrap

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_cancelled_close_keeps_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rootfs, "PRELOADED", "json")
    zygote = await Zygote.start()
    closing = asyncio.create_task(zygote.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    assert zygote._control.fileno() == -1
    await zygote.close()
    assert zygote._process.returncode is not None


async def test_a_retired_zygote_ends_with_its_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rootfs, "PRELOADED", "json,sympy,numpy")
    opened = await open_bubblewrap()
    lane = opened._lanes[0]
    zygote = await lane.zygote()
    slow = asyncio.create_task(opened.call(SandboxCall("python", "import time; time.sleep(60)", wall_s=60)))
    while zygote.idle.is_set():
        await asyncio.sleep(0.01)
    lane._retire(zygote)
    await opened.close()
    assert (zygote._control.fileno(), zygote._process.returncode is None) == (-1, False)
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)
