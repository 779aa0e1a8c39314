"""A log that takes nothing for a while: what is done waits, is named on every screen, and is stored afterwards."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.log.carriers import known_here
from agent0.assembly.runtime.app import open_app, run_handlers, started
from agent0.assembly.runtime.plugins import known_handlers
from agent0.config.loading import load
from agent0.infra.bus.processes import ask
from agent0.infra.log.nats_server import Server
from agent0.infra.log.streams import Topology, init
from agent0.settings import HandlerSettings, NatsSettings, Settings
from tests.patience import PATIENCE_S
from tests.test_cluster_keys import SIZES

FULL = 24_000
"""Bytes of a log that a small run fills."""


def user_of(server: Server, home: Path) -> Settings:
    """Settings of a process that uses ``server`` from outside."""
    names = {f"AGENT0_{key}": value for key, value in {**SIZES, "ARTIFACTS__STORE": "folder"}.items()}
    names["AGENT0_NATS__PASSWORD"] = server.password("app").get_secret_value()
    return load(
        "scripted", {"home": str(home), "nats.url": server.url, "nats.user": "app", "nats.max_bytes": str(FULL)}, names
    )


async def limited(server: Server, size: int) -> None:
    """The log may have ``size`` bytes from now on."""
    topology = Topology(NatsSettings(max_bytes=size), HandlerSettings())
    await init(server, topology, known_handlers().values())


@pytest.mark.usefixtures("shared_sandbox")
async def test_a_full_log_is_waited_for_by_name_and_the_run_goes_on(nats_server: Server, tmp_path: Path) -> None:
    await limited(nats_server, FULL)
    settings = user_of(nats_server, tmp_path / "home")
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(open_app(settings))
        work = asyncio.create_task(run_handlers(app))
        log = await stack.enter_async_context(open_log(settings))
        begin = started(settings)
        await log.append([begin])
        async with asyncio.timeout(PATIENCE_S):
            while not (waits := [process.waits for process in await ask(log) if process.waits]):
                assert not work.done()
        assert "refuses to store" in waits[0]
        assert waits[0] == known_here(settings)["waits"], "run why, run list and status show it"
        stored = await log.last_seq(begin.run)
        await limited(nats_server, 8 << 20)
        async with asyncio.timeout(PATIENCE_S):
            async for recorded in log.tail(stored, begin.run):
                if recorded.type in ("RunFinished", "RunFailed"):
                    break
        assert recorded.type == "RunFinished"
        assert not any(process.waits for process in await ask(log))
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        events = [stored async for stored in log.read(begin.run)]
        assert len({(stored.cause, stored.handler, stored.id) for stored in events}) == len(events)
        assert not [stored for stored in events if stored.type == "ReactionFailed"]
    assert not list((settings.home / "waits").glob("*.log"))
