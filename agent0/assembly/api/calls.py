"""Part of the rim: asynchronous work from synchronous code, in a script and in a notebook alike."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from threading import Event
from typing import Any, TypeVar

T = TypeVar("T")
Settable = Mapping[str, object]
"""Settings by dotted key: text as for ``--set``, or a value."""
Say = Callable[[str], None]
"""Takes a line about how it goes, such as ``print``."""
LOOK_S = 0.2
"""How often a call looks whether it was interrupted."""


def texts(settings: Settable) -> dict[str, str]:
    """Settings as they would be typed after ``--set``: text as it is, other values as JSON."""
    return {key: value if isinstance(value, str) else json.dumps(value, default=str) for key, value in settings.items()}


def run_sync(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``work()`` to its end and return its result. It gets an event loop of its own in a thread of its own: that of
    a notebook is running already. Ctrl-C cancels the work, waits until it has drained, and is raised.

    Raises:
        KeyboardInterrupt: it was cancelled so; whatever ``work()`` raises.
    """
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    watched, stopped = Event(), Event()

    async def noted() -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - inside a coroutine
        begun.append((asyncio.get_running_loop(), task))
        if stopped.is_set():
            raise asyncio.CancelledError
        return await work()

    def in_thread() -> T:
        watched.wait()  # not before Ctrl-C would be noticed
        return asyncio.run(noted())

    with ThreadPoolExecutor(1, "agent0") as pool:
        try:
            ended = pool.submit(in_thread)
            watched.set()
            while not wait([ended], LOOK_S).done:
                pass  # a signal that another thread took is noticed between two waits
            return ended.result()
        except KeyboardInterrupt:
            stopped.set()
            watched.set()
            for loop, task in begun:
                with suppress(RuntimeError):  # it has ended meanwhile
                    loop.call_soon_threadsafe(task.cancel)
            raise  # leaving the pool waits for the thread
