"""A process that makes sandbox processes. Not one of asyncio's, which kills where a start is cancelled or a loop ends:
whoever kills bubblewrap while it prepares its child leaves that child waiting for ever."""

import asyncio
import contextlib
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import IO

END_S = 10.0
"""How long one that is told so may take to end by itself, on a busy machine."""


class Process:
    """Running as soon as it is made, in a session of its own: a signal to everybody here (Ctrl-C, ``timeout``) does not
    end it before its owner. ``talks``: it has a standard input and output, see ``streams``."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        talks: bool = False,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Raises OSError where it cannot be started."""
        channel = subprocess.PIPE if talks else subprocess.DEVNULL
        self._popen = subprocess.Popen(  # noqa: S603 (bubblewrap, or the client of an engine)
            command,
            bufsize=0,
            env=environment,
            stdin=channel,
            stdout=channel,
            stderr=subprocess.PIPE,
            pass_fds=pass_fds,
            start_new_session=True,
        )
        pipes = {"stdin": self._popen.stdin, "stdout": self._popen.stdout, "stderr": self._popen.stderr}
        self._ends: dict[str, IO[bytes] | asyncio.BaseTransport] = {name: pipe for name, pipe in pipes.items() if pipe}
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._pidfd = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else -1
        if self._pidfd >= 0:
            self._loop.add_reader(self._pidfd, self._ended)
        else:
            threading.Thread(target=self._watch, daemon=True).start()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """As ``subprocess`` has it; None while it runs."""
        return self._popen.returncode

    def _watch(self) -> None:
        self._popen.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._over.set)

    def _ended(self) -> None:
        self._popen.wait()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._over.set()

    async def streams(self) -> tuple[asyncio.StreamWriter, asyncio.StreamReader, asyncio.StreamReader]:
        """To its standard input, from its standard output and error."""
        reader = asyncio.StreamReader()
        transport, protocol = await self._loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), self._ends["stdin"]
        )
        self._ends["stdin"] = transport
        writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
        return writer, await self._reader("stdout"), await self._reader("stderr")

    async def _reader(self, name: str) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit=1 << 20)
        self._ends[name], _ = await self._loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), self._ends[name]
        )
        return reader

    def stderr_text(self) -> str:
        """What is there of its standard error, where that is no stream."""
        pipe = self._popen.stderr
        assert pipe is not None  # noqa: S101 - always a pipe
        os.set_blocking(pipe.fileno(), False)
        return (pipe.read(1 << 16) or b"").decode(errors="replace").strip()

    def hush(self) -> None:
        """End its standard input: one that reads that ends, too."""
        self._ends["stdin"].close()

    def kill(self) -> None:
        """Now. Nothing happens where it has ended."""
        self._popen.kill()

    async def wait(self, seconds: float | None = None) -> bool:
        """Return once it has ended, or after so many seconds. Whether it has."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)
        return self._over.is_set()

    async def end(self, *, at_once: bool) -> None:
        """Have it ended, and every pipe closed: ``at_once``, or by itself, for END_S at most."""
        try:
            if at_once or not await self.wait(END_S):
                self.kill()
            await self.wait()
        finally:  # whoever waits here may be cancelled
            for pipe in self._ends.values():
                pipe.close()
