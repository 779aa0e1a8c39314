"""Real parts for every test: a fresh nats-server in a temporary folder starts in a twentieth of a second."""

import fcntl
import gc
import os
import shutil
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server, open_server
from agent0.infra.log.streams import Topology, init
from agent0.settings import HandlerSettings, NatsSettings

for size in (
    "COLUMNS",
    "LINES",
):  # readline, which pytest imports, puts a terminal's into the environment of its workers
    os.environ.pop(size, None)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of its workers: as many threads in each would wait for one another
GARBAGE = (20_000, 20, 20)
"""Objects made and generations passed until garbage is looked for: with Python's own numbers (700, 10, 10) that takes a
thirtieth of the time of all tests."""
MEMORY, ROOM = Path("/dev/shm"), 8 << 30
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # files there are written in a tenth less of all time
settings.register_profile("patient", deadline=None, max_examples=30)  # a busy machine is no defect
settings.load_profile("patient")


class Together(LoadFileScheduling):
    """A file's tests go to one process, and so do all that load transformers' models and peft, all that need the log
    that is archived, and all that read the trees of our own files: that takes longer than most of them."""

    together = (
        ("tests/archive/",),
        ("tests/engine/", "tests/test_gguf.py"),
        tuple(f"tests/test_{name}.py" for name in ("architecture", "chat_format", "names", "security", "words")),
    )

    def _split_scope(self, nodeid: str) -> str:
        found = [files[0] for files in self.together if nodeid.startswith(files)]
        return found[0] if found else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Of the default ``--dist loadfile``."""
    return Together(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting imports stays: the garbage collector looks at none of it, then or later. It is a third of the
    time of collecting, and of every collection of garbage after it.

    Of several processes one goes ahead: the others read the rewritten asserts that it keeps, instead of making them all
    again, which takes a third of the time too."""
    gc.disable()
    with Path(__file__).open() as ours:
        try:
            fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(ours, fcntl.LOCK_SH)
        try:
            return (yield)
        finally:
            gc.freeze()
            gc.set_threshold(*GARBAGE)
            gc.enable()


@pytest.fixture(scope="session", autouse=True)
def sandbox_of_commands() -> Iterator[None]:
    """What ``tests.terminal`` opened ends with the tests."""
    yield
    if opened := sys.modules.get("tests.kept_open"):
        opened.close()


@pytest.fixture
def shared_sandbox() -> Iterator[None]:
    """For what opens one without a command."""
    from tests.kept_open import one_sandbox

    with one_sandbox():
        yield


@pytest.fixture
def nats_settings() -> NatsSettings:
    """Settings of the embedded server; a test module overrides them by a fixture of this name."""
    return NatsSettings()


@pytest_asyncio.fixture
async def nats_server(tmp_path: Path, nats_settings: NatsSettings) -> AsyncIterator[Server]:
    """A fresh embedded server without streams."""
    server = await open_server(tmp_path, nats_settings)
    yield server
    await server.stop()


@pytest_asyncio.fixture
async def log(nats_server: Server, nats_settings: NatsSettings) -> AsyncIterator[Log]:
    """A connected log on a provisioned server."""
    await init(nats_server, Topology(nats_settings, HandlerSettings()), ())
    async with await Log.connect(nats_server) as connected:
        yield connected
