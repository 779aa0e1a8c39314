"""Part of the rim: asynchronous work from synchronous code, in a script and in a notebook alike."""

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401 - its hook at exit must be older than ours: what drains uses its threads
import json
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import aclosing, suppress
from queue import Empty, Queue
from typing import Any, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T")
Settable = Mapping[str, object]
"""Settings by dotted key: text as for ``--set``, or a value."""
Say = Callable[[str], None]
"""Takes a line about how it goes, such as ``print``."""
LOOK_S = 0.2
"""How often a call looks whether it was interrupted."""
FULL_S, MOST = 0.01, 64
"""How often a stream looks whether its reader has caught up, and how many items it is ahead at most."""


def texts(settings: Settable) -> dict[str, str]:
    """Settings as they would be typed after ``--set``: text as it is, other values as JSON."""
    return {key: value if isinstance(value, str) else json.dumps(value, default=str) for key, value in settings.items()}


class Background(Generic[T]):
    """Asynchronous work with an event loop of its own in a thread of its own: that of a notebook is running already.
    ``ended`` holds what it comes to. What is under way when the process ends is stopped, and drains."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.ended: Future[T] = Future()
        self._work, self._stopped = work, False
        self._begun: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self._thread = threading.Thread(target=self._run, name="agent0", daemon=True)

    def start(self) -> None:
        """Begin the work; it goes on beside the caller."""
        _under_way.add(self)
        self._thread.start()

    def join(self) -> T:
        """Wait until the work has ended and return its result. Ctrl-C stops it, and is raised.

        Raises:
            KeyboardInterrupt: it was stopped so; whatever the work raises.
        """
        try:
            while not wait([self.ended], LOOK_S).done:
                pass  # a signal that another thread took is noticed between two waits
        except KeyboardInterrupt:
            self.stop()
            raise
        return self.ended.result()

    def stop(self) -> None:
        """Cancel the work and wait until it has drained; nothing, where it has ended."""
        self._stopped = True
        if self._begun:
            loop, task = self._begun
            with suppress(RuntimeError):  # it has ended meanwhile
                loop.call_soon_threadsafe(task.cancel)
        if self._thread.is_alive():
            self._thread.join()

    async def _noted(self) -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - inside a coroutine
        self._begun = asyncio.get_running_loop(), task
        if self._stopped:
            raise asyncio.CancelledError
        return await self._work()

    def _run(self) -> None:
        try:
            result = asyncio.run(self._noted())
        except BaseException as error:
            cause = error
            while isinstance(cause, BaseExceptionGroup):  # of works side by side: the first one's
                cause = cause.exceptions[0]
            self.ended.set_exception(cause)
        else:
            self.ended.set_result(result)


_under_way: WeakSet[Background[Any]] = WeakSet()


def _stop_all() -> None:
    for background in [*_under_way]:
        background.stop()


# the threads that drained work needs are gone at atexit; the hook before it has no public name
getattr(threading, "_register_atexit", atexit.register)(_stop_all)


def run_sync(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``work()`` to its end and return its result. Ctrl-C cancels the work, waits until it has drained, and is
    raised.

    Raises:
        KeyboardInterrupt: it was cancelled so; whatever ``work()`` raises.
    """
    background = Background(work)
    try:
        background.start()
        return background.join()
    except KeyboardInterrupt:
        background.stop()
        raise


def iterate_sync(stream: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
    """Yield the items of ``stream()`` as they come; who stops reading ends the stream.

    Raises:
        Exception: whatever the stream raises, behind the items before it.
    """
    items: Queue[T] = Queue(MOST)

    async def read() -> None:
        async with aclosing(stream()) as source:  # type: ignore[type-var]  # all of ours are generators
            async for item in source:
                while items.full():
                    await asyncio.sleep(FULL_S)
                items.put(item)

    background = Background(read)
    try:
        background.start()
        while not (background.ended.done() and items.empty()):
            with suppress(Empty):
                yield items.get(timeout=0 if background.ended.done() else FULL_S)
        background.ended.result()
    finally:
        background.stop()
