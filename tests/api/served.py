"""Data folders for tests of the server, and servers on a free port."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent0.api import server
from agent0.events.base import Recorded
from agent0.infra.storage import sqlite
from agent0.projections import Projector, tables
from agent0.settings import ApiSettings, Settings
from tests.story import bodies

ADDRESS = "http://127.0.0.1:8650"


def stored(home: Path, events: list[Recorded]) -> Path:
    """``home`` with tables that hold ``events``; more can be added."""
    (home / "tables").mkdir(parents=True, exist_ok=True)
    projector = Projector(home / "tables" / "view.db", sqlite.connect, tables(), "stream")
    projector.apply(bodies(events))
    projector.close()
    return home


@contextmanager
def viewed(home: Path, **api: Any) -> Iterator[str]:
    """`agent0 view` of ``home`` on a free port, in a thread with a loop of its own; its address. ``api``: settings."""
    settings = Settings(home=home, api=ApiSettings(**{"port": 0, **api}))
    said: list[str] = []
    stands, loop = threading.Event(), asyncio.new_event_loop()

    def say(address: str) -> None:
        said.append(address)
        stands.set()

    task = loop.create_task(server.view(settings, say))
    thread = threading.Thread(target=_run, args=(loop, task), name="view")
    thread.start()
    try:
        stands.wait()
        yield said[0]
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def _run(loop: asyncio.AbstractEventLoop, task: "asyncio.Task[None]") -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
