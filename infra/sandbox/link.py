"""The host's hold on a process that speaks frames on its standard input and output: the client of an engine, with a
broker or one single call behind it."""

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

from agent0.infra.sandbox import roots
from agent0.infra.sandbox.inside import asking, calling, frames
from agent0.infra.sandbox.inside.calling import GRACE_S, SLACK_S, Ended, Request, SandboxProcessError
from agent0.infra.sandbox.process import Process
from agent0.ports.sandbox import Root

START_S = 60.0
ANSWER_S = 20.0
"""What the way there and back may take beside the call itself: files of 60 MiB, a loaded machine."""
_KEPT = 4096
_ADVICE = ("Run '", "See '")
"""How engines end a complaint that said it all before."""


def _image_root(root: Root) -> asking.ImageRoot:
    return {
        "executables": list(root.executables),
        "modules": roots.importable(root),
        "preloaded": roots.preloaded(root).split(","),
        "versions": roots.versions(root),
    }


class SandboxLink:
    """The host's connection to one sandbox process that talks on standard input and output. Use ``await
    Link.open(...)``."""

    def __init__(
        self, process: Process, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader, stderr: asyncio.StreamReader
    ) -> None:
        self._process, self._stdin = process, stdin
        self._waiting: dict[int, asyncio.Future[Ended]] = {}
        self._numbers = itertools.count()
        self._turn = asyncio.Lock()
        self._complaints = bytearray()
        self._tasks = [asyncio.create_task(self._listen(stdout)), asyncio.create_task(self._overhear(stderr))]
        self._greeting: asyncio.Future[dict[str, list[str]]] = asyncio.get_running_loop().create_future()
        self.inventory: dict[str, list[str]] = {}
        self.dead = self._greeted = False

    @classmethod
    async def open(cls, command: Sequence[str], environment: dict[str, str]) -> "SandboxLink":
        """Start ``command`` and wait for the greeting.

        Raises:
            WorldError: none came, or one of another version. The message is what was said instead.
        """
        process = Process(command, environment, talks=True)
        try:
            link = cls(process, *await process.streams())
        except BaseException:
            process.hush()
            await process.end(at_once=False)
            raise
        try:
            async with asyncio.timeout(START_S):
                link.inventory = await link._greeting
        except TimeoutError:
            await link.close()
            raise SandboxProcessError(f"it did not greet within {START_S:.0f} s") from None
        except BaseException:
            await link.close()
            raise
        return link

    async def ask(self, request: Request, root: Root) -> Ended:
        """Have ``request`` run with what ``root`` names.

        Raises:
            WorldError: nothing can be said about the code; whoever sees this ends the link.
        """
        number = next(self._numbers)
        answer: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            if self.dead:
                raise SandboxProcessError(self._why("it is gone"))
            async with asyncio.timeout(request.wall_s + GRACE_S + SLACK_S + ANSWER_S):
                message = frames.pack(*asking.message_of(number, request, _image_root(root)))
                async with self._turn:
                    self._stdin.write(message)
                    await self._stdin.drain()
                return await answer
        except TimeoutError as error:
            raise SandboxProcessError("no answer came in time") from error
        except (ConnectionError, OSError) as error:
            raise SandboxProcessError(self._why(f"it is gone: {error}")) from error
        finally:
            self._waiting.pop(number, None)
            if not answer.cancelled() and answer.done():
                answer.exception()  # seen, whoever stopped waiting

    async def _listen(self, stdout: asyncio.StreamReader) -> None:
        try:
            hello, _ = await calling.receive(stdout)
            self._greeting.set_result(asking.inventory_in(hello))
            self._greeted = True
            while True:
                self._take(*await calling.receive(stdout))
        except (EOFError, ConnectionError, ValueError, KeyError, TypeError) as error:
            await self._fail("it ended" if isinstance(error, EOFError) else f"it said what makes no sense: {error!r}")

    def _take(self, header: dict[str, Any], blobs: list[bytes]) -> None:
        waiting = self._waiting.get(header["id"])
        if waiting is None or waiting.done():
            return  # nobody waits any more
        if "error" in header:
            waiting.set_exception(SandboxProcessError(str(header["error"])))
        else:
            waiting.set_result(asking.ended(header, blobs))

    async def _fail(self, why: str) -> None:
        """Nothing that this process says counts any more."""
        self.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._tasks[1]), 5.0)  # what it complained of, to the end
        futures: list[asyncio.Future[Any]] = [self._greeting, *self._waiting.values()]
        for future in futures:
            if not future.done():
                future.set_exception(SandboxProcessError(self._why(why)))
        if not self._greeting.cancelled():
            self._greeting.exception()

    async def _overhear(self, stderr: asyncio.StreamReader) -> None:
        while chunk := await stderr.read(_KEPT):
            self._complaints += chunk
            del self._complaints[:-_KEPT]

    def _why(self, why: str) -> str:
        lines = self._complaints.decode(errors="replace").splitlines()
        complaints = [line.strip() for line in lines if line.strip() and not line.startswith(_ADVICE)]
        return f"{why}: {complaints[-1][:300]}" if complaints else why

    def kill(self) -> None:
        """End the process: now, or where it has not greeted yet, by ending what it reads."""
        self.dead = True
        self._process.hush()
        if self._greeted:
            self._process.kill()

    async def close(self) -> None:
        """``kill`` and wait."""
        self.kill()
        await self._process.end(at_once=self._greeted)
        await asyncio.gather(*self._tasks, return_exceptions=True)
