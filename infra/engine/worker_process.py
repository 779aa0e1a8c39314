"""A Python object in a process of its own: heavy work never blocks the event loop, and its memory ends with it.

The child gets a bare environment (no secrets) and one end of a socket; it ends when the other end closes.
"""

import asyncio
import gc
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from agent0 import errors

KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "HF_HOME", "VIRTUAL_ENV")
STOP_S = 5.0


class Worker:
    """``target`` ("module:Class") built with ``options`` in a child that starts at the first call.

    A child that dies fails the call in flight with TransientError; the next call starts another. ``hear`` gets what
    the object reports (by its attribute ``report``, if it has one) while a call is in flight, in another thread.
    ``without``: packages that are not there for the child, whether installed or not.
    """

    def __init__(
        self,
        target: str,
        options: Mapping[str, object],
        *,
        threads: int = 1,
        hear: Callable[[Any], None] = lambda _: None,
        without: Sequence[str] = (),
    ) -> None:
        self._without = without
        self._target, self._options, self._threads, self._hear = target, options, threads, hear
        self._child: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The child's process id, None where none runs."""
        return self._child.pid if self._child and self._child.poll() is None else None

    async def call(self, method: str, *arguments: Any) -> Any:
        """``method(*arguments)`` in the child; one call at a time.

        Raises:
            Agent0Error: what the child raised; TransientError where the child died.
        """
        async with self._lock:
            exchange = asyncio.create_task(asyncio.to_thread(self._exchange, method, arguments))
            exchange.add_done_callback(lambda task: task.cancelled() or task.exception())  # asyncio would print it
            return await asyncio.shield(exchange)

    async def rest(self) -> None:
        """End an idle child; the next call starts another."""
        async with self._lock:
            await asyncio.to_thread(self._end)

    async def close(self) -> None:
        """End the child; a call in flight fails."""
        self._closed = True
        await asyncio.to_thread(self._end)

    def _exchange(self, method: str, arguments: tuple[Any, ...]) -> Any:
        if self._closed:
            raise errors.TransientError("The model's worker process is closed.")
        try:
            if self.pid is None or self._connection is None:
                self._start()
            state, value = self._ask((method, arguments))
        except (EOFError, OSError) as error:
            code = self._child.poll() if self._child else None
            self._end()
            raise errors.TransientError(
                "The model's worker process ended in the middle of a call.",
                f"Exit status {code}; {type(error).__name__}. Out of memory is the usual cause.",
                "The call is tried again in a new process; a smaller models.max_batch needs less memory.",
            ) from error
        if state == "error":
            raise _revived(*value)
        return value

    def _ask(self, call: tuple[str, tuple[Any, ...]]) -> tuple[str, Any]:
        """The child's answer; what it tells before that is heard."""
        assert self._connection is not None  # noqa: S101 - started before
        self._connection.send(call)
        while True:
            state, value = self._connection.recv()
            if state != "news":
                return state, value
            self._hear(value)

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._child = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", __name__, str(theirs.fileno()), *self._without],
                pass_fds=[theirs.fileno()],
                env=environment_of(self._threads),
                stdin=subprocess.DEVNULL,
            )
        self._connection = Connection(ours.detach())
        self._connection.send((self._target, self._options))

    def _end(self) -> None:
        connection, child = self._connection, self._child
        self._connection = self._child = None
        if child:
            child.kill()
            with suppress(subprocess.TimeoutExpired):  # its memory is given back in the kernel's own time
                child.wait(STOP_S)
        if connection:
            connection.close()


def environment_of(threads: int) -> dict[str, str]:
    """What a child sees: no secret, and nothing that would make it fetch or count otherwise than its parent."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment |= {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    environment["OMP_WAIT_POLICY"] = "PASSIVE"  # threads that spin while they wait take the cores of all other work
    environment["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"  # in small pages a tenth of all time goes to page faults
    environment |= {"PYTHONPATH": str(Path(__file__).parents[3]), "PYTHONHASHSEED": "0"}
    environment["PYTHONSAFEPATH"] = "1"  # a file in the folder of a user, named as a library, is none
    return environment | {"PYTHONWARNINGS": "ignore::FutureWarning"}  # peft against the newest transformers


def whole_environment(threads: int) -> dict[str, str]:
    """What a child sees that works as its parent does: its settings, and the keys that they name, too."""
    return {**os.environ, **environment_of(threads)}


def _revived(name: str, fields: tuple[str, ...]) -> errors.Agent0Error:
    error_type: type[errors.Agent0Error] = getattr(errors, name, errors.OperationError)
    return error_type(*fields)


def _error_fields(error: Exception) -> tuple[str, tuple[str, ...]]:
    if isinstance(error, errors.DependencyError):
        return type(error).__name__, (error.dependency, error.why, error.fix)
    if isinstance(error, errors.Agent0Error):
        return type(error).__name__, (error.what, error.why, error.fix)
    return "TransientError", ("The model's worker failed.", f"{type(error).__name__}: {error}"[:500])


def serve(connection: Connection) -> None:
    """The child: build the object, answer calls until the parent is gone."""
    target, options = connection.recv()
    built: Any = None
    while True:
        try:
            method, arguments = connection.recv()
        except (EOFError, OSError):
            return
        try:
            if built is None:
                built = _built(target, options)
                if hasattr(built, "report"):
                    built.report = lambda news: connection.send(("news", news))
            answer = ("ok", getattr(built, method)(*arguments))
        except Exception as error:  # told to the parent, which raises it
            answer = ("error", _error_fields(error))
        try:
            connection.send(answer)
        except OSError:
            return


def _built(target: str, options: Mapping[str, object]) -> Any:
    """The object. Nobody looks for garbage meanwhile, nor afterwards among what was imported: it stays, and looking it
    through is a fifth of the start."""
    gc.disable()
    try:
        module, _, name = target.partition(":")
        return getattr(importlib.import_module(module), name)(**options)
    finally:
        gc.freeze()
        gc.enable()


def end_with(connection: Connection) -> None:
    """End this process, whatever it computes, as soon as the other end of ``connection`` is closed: a parent that was
    killed tells nobody, and nobody wants the answer."""

    def wait() -> None:
        line = select.poll()
        line.register(connection.fileno(), select.POLLRDHUP)
        line.poll()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGHUP):  # Ctrl-C and a closed terminal are the parent's to handle
        signal.signal(number, signal.SIG_IGN)
    sys.modules.update(dict.fromkeys(sys.argv[2:]))  # type: ignore[arg-type] # None: an import fails, and none is found
    _line = Connection(int(sys.argv[1]))
    end_with(_line)
    serve(_line)
