"""Ending a fork server gives everything back, whoever stops waiting for that."""

import asyncio

import pytest

from agent0.infra.sandbox.backends.fork_server import ForkServer
from agent0.ports.sandbox import SandboxCall
from tests.sandbox.opened import LEAN, open_lean

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_cancelled_close_keeps_no_descriptor() -> None:
    server = await ForkServer.start(LEAN)
    closing = asyncio.create_task(server.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    assert {one.fileno() for one in (server._control, *(n.control for n in server._spawners))} == {-1}
    await server.close()
    assert server._process.returncode is not None


async def test_a_retired_fork_server_ends_with_its_sandbox() -> None:
    opened = await open_lean()
    slot = opened._slots[0]
    server = await slot.server()
    slow = asyncio.create_task(opened.call(SandboxCall("python", "import time; time.sleep(60)", wall_s=60, root=LEAN)))
    while server.idle.is_set():
        await asyncio.sleep(0.01)
    slot._retire(server)
    await opened.close()
    assert (server._control.fileno(), server._process.returncode is None) == (-1, False)
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)
