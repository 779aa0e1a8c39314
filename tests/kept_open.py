"""What commands of a test process share instead of starting it each time: one real sandbox, and a log's server.

To start a sandbox is most of what a small run costs, and to start a server most of what a question costs. Both live on
an event loop in a thread of its own, since each command has a loop of its own. Tests of the sandbox itself open theirs.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import Coroutine, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agent0.assembly.runtime import port_openers
from agent0.infra.log.nats_server import open_server
from agent0.ports.sandbox import Sandbox, SandboxCall, SandboxResult
from agent0.settings import NatsSettings, SandboxSettings

T = TypeVar("T")
_open = port_openers.open_sandbox
_PLAIN = SandboxSettings(workers=1)
_PATH = os.environ["PATH"]
"""Elsewhere there may be none of the programs that a sandbox takes, which is what some test is about."""
_BOUNDS = ("workers", "wall_s", "verifier_wall_s", "mem_mib")
"""Of these every call brings its own, or any will do."""


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="kept open", daemon=True).start()
    return loop


def _there(work: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
    return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop()))


class OneSandbox:
    """The ``Sandbox`` port for whichever event loop asks; closing it leaves it to the next one."""

    def __init__(self, inner: Sandbox) -> None:
        self.inner = inner

    async def call(self, call: SandboxCall) -> SandboxResult:
        """See ``Sandbox``."""
        return await _there(self.inner.call(call))

    async def close(self) -> None:
        """It stays."""


_opened: list[OneSandbox] = []


async def _shared(settings: SandboxSettings = _PLAIN, *, label: str = "student", **more: Any) -> Sandbox:
    plain = settings.model_copy(update={name: getattr(_PLAIN, name) for name in _BOUNDS}) == _PLAIN
    if not plain or os.environ["PATH"] != _PATH:
        return await _open(settings, label=label, **more)
    if not _opened:
        _opened.append(OneSandbox(await _there(_open(_PLAIN))))
    return _opened[0]


@contextlib.contextmanager
def attached(home: Path) -> Iterator[Path]:
    """Inside, somebody else uses the log of ``home`` too: no command starts its server, or waits for its end."""
    server = asyncio.run_coroutine_threadsafe(open_server(home, NatsSettings()), _loop()).result()
    try:
        yield home
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), _loop()).result()


@contextlib.contextmanager
def one_sandbox() -> Iterator[None]:
    """Inside, whatever opens a sandbox as settings have it by default gets the one of this process."""
    with pytest.MonkeyPatch.context() as patch:
        if port_openers.open_sandbox is _open:  # else a test put another one in its place
            patch.setattr(port_openers, "open_sandbox", _shared)
        yield


def close() -> None:
    """End it, where there is one."""
    while _opened:
        asyncio.run_coroutine_threadsafe(_opened.pop().inner.close(), _loop()).result()
