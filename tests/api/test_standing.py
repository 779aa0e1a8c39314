"""`agent0 up` says that it stands when all of it does, and a log server that is slow for seconds ends nothing."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent0.api import server
from agent0.assembly.runtime.read_models import catch_up
from agent0.config.loading import load
from agent0.errors import DependencyError
from agent0.infra.bus.bus import Bus
from agent0.infra.log.server_proof import running_pid
from agent0.settings import Settings
from tests.api.flows import until
from tests.api.test_up import SMALL, standing
from tests.kept_open import one_sandbox
from tests.patience import until as soon
from tests.processes import halt


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load("scripted", {"home": str(tmp_path), "api.port": "0", "sandbox.workers": "1"})


def paused(home: Path, seconds: float) -> None:
    """Stop the log's server for so long, as a machine does that is short of disk or memory."""
    pid = running_pid(home / "nats")
    halt(pid)
    threading.Timer(seconds, os.kill, (pid, signal.SIGCONT)).start()


@pytest.mark.parametrize("last", ["handlers", "tables", "pages"])
async def test_it_stands_when_the_last_of_it_does(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """One part is kept from standing: nothing is said until it does."""
    reached, allowed = asyncio.Event(), asyncio.Event()

    def delayed(begin: Callable[..., Any]) -> Callable[..., Any]:
        async def later(*given: Any, **named: Any) -> Any:
            reached.set()
            await allowed.wait()
            return await begin(*given, **named)

        return later

    of, name = {
        "handlers": (Bus, "start"),
        "tables": (server, "run_projector"),
        "pages": (server._Server, "startup"),
    }[last]
    monkeypatch.setattr(of, name, delayed(getattr(of, name)))
    addresses: list[str] = []
    with one_sandbox():
        serving = asyncio.ensure_future(server.up(settings, addresses.append))
        try:
            await reached.wait()
            for _ in range(100):  # whatever else is ready to go on does
                await asyncio.sleep(0)
            assert addresses == [] and not serving.done()
            allowed.set()
            await soon(lambda: bool(addresses) or serving.done(), "it to stand")
            async with httpx2.AsyncClient(base_url=addresses[0], timeout=60) as client:
                assert (await client.get("/healthz")).status_code == 200
                assert (await client.get("/v1/status")).json()["lag"] == 0
        finally:
            allowed.set()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def test_what_cannot_begin_never_stood(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: Any) -> None:
        raise DependencyError("log", "It went away while the handlers began.")

    monkeypatch.setattr(Bus, "start", refused)
    addresses: list[str] = []
    with one_sandbox(), pytest.raises(BaseExceptionGroup) as ended:
        await server.up(settings, addresses.append)
    assert ended.group_contains(DependencyError) and addresses == []


async def test_a_log_that_is_slow_while_it_begins_ends_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent0.infra.log.connection.ANSWER_S", 1.0)

    async def slow(settings: Settings, log: Any) -> int:
        paused(settings.home, 1.5)
        return await catch_up(settings, log)

    monkeypatch.setattr(server, "catch_up", slow)
    async with standing(settings, handlers=False) as client:
        assert (await client.get("/v1/status")).json()["log"]["state"] == "answers"


async def test_a_log_that_is_slow_ends_nothing(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slower than any answer may be, at its first moment and in the middle of a run."""
    monkeypatch.setattr("agent0.infra.log.connection.ANSWER_S", 0.2)
    projecting = server.run_projector

    async def slow(settings: Settings, *given: Any) -> None:
        paused(settings.home, 1)
        await projecting(settings, *given)

    monkeypatch.setattr(server, "run_projector", slow)
    async with standing(settings) as client:
        begun = (await client.post("/v1/runs", json={"name": "slow", "settings": SMALL})).json()
        await until(client, begun["run"], begun["seq"] - 1, "TaskAttempted")
        paused(settings.home, 1)
        await until(client, begun["run"], begun["seq"] - 1, "RunFinished")
