"""The artifact store of a host that shares no folder with the others: its own files, and behind them a shared store.

What is put here is in the shared store before an event is appended that may name it; what is not here is fetched from
there. So no event names what only one host has.
"""

import asyncio
import atexit
import fcntl
import os
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from agent0.errors import Agent0Error, LogError, NotFoundError
from agent0.events.values import Artifact
from agent0.infra.storage.artifacts import FileArtifacts

PUTS = 4
"""Artifacts that are sent at once."""
LOOK_S = 0.1
"""How often is looked whether another process has fetched what it is fetching."""
CLOSE_S = 10.0

T = TypeVar("T")


class SharedStore(Protocol):
    """Where all hosts find the artifacts that any of them put."""

    async def put(self, artifact: Artifact, path: Path) -> None:
        """Store the content of the file at ``path``; it outlives this host when this returns."""
        ...

    async def get(self, artifact: Artifact, path: Path) -> None:
        """Write the content behind what ``path`` has of it; its digest is checked."""
        ...

    async def holds(self, artifact: Artifact) -> bool:
        """Whether all of it is there; its content is not read."""
        ...

    async def unnamed(self, names: Collection[str], before: datetime) -> list[str]:
        """Digests that are none of ``names`` and were put before ``before``."""
        ...

    async def remove(self, digest: str) -> None:
        """Delete what has ``digest``."""
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...


class SharedArtifacts(FileArtifacts):
    """Files of this host in front of a shared store, with which one thread of its own talks: whoever asks for an
    artifact need not be able to wait for a network."""

    def __init__(self, home: Path, connect: Callable[[], Awaitable[SharedStore]]) -> None:
        """``connect`` is called once, when the shared store is first needed."""
        super().__init__(home)
        self._connect = connect
        self._store: SharedStore | None = None
        self._connecting: asyncio.Lock | None = None
        self._unsent: dict[str, Artifact] = {}
        self._sent: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._guard = threading.Lock()

    def put(self, data: bytes, media: str = "application/octet-stream") -> Artifact:
        """Store ``data`` on this host; `share` sends it."""
        artifact = super().put(data, media)
        with self._guard:
            if artifact.sha256 not in self._sent:
                self._unsent[artifact.sha256] = artifact
        return artifact

    def get(self, artifact: Artifact) -> bytes:
        """The content of ``artifact``, fetched where this host lacks it, or has a damaged copy.

        Raises:
            NotFoundError: nobody has it. LogError: it is damaged. DependencyError: the shared store is away.
        """
        try:
            return super().get(artifact)
        except NotFoundError:
            self._run(self._fetch(artifact)).result()
        except LogError as error:
            if not self._run(self._replaced(artifact)).result():
                raise error
        return super().get(artifact)

    def verify(self, artifact: Artifact) -> str:
        """What is wrong with the stored content: ``missing`` where the shared store lacks it, ``damaged``, or nothing.
        What this host lacks, or has damaged, is fetched. The shared store's copy is read only then.

        Raises:
            DependencyError: the shared store is away.
        """
        match super().verify(artifact):
            case "missing":
                try:
                    self._run(self._fetch(artifact)).result()
                except (NotFoundError, LogError) as error:
                    return "damaged" if isinstance(error, LogError) else "missing"
            case "damaged":
                self._run(self._replaced(artifact)).result()
            case _ if not self._run(self._shared(artifact)).result():
                return "missing"
        return super().verify(artifact)

    async def share(self) -> None:
        """Send what was put since the last time; all of it is in the shared store when this returns.

        Raises:
            DependencyError: the shared store is away, or full.
        """
        with self._guard:
            unsent = list(self._unsent.values())
        if unsent:
            await asyncio.wrap_future(self._run(self._send(unsent)))

    async def collect(self, names: Collection[str], before: datetime, delete: bool) -> int:
        """How many artifacts of the shared store are none of ``names`` and were put before ``before``; deleted where
        ``delete`` says so."""

        async def collected() -> int:
            store = await self._connected()
            digests = await store.unnamed(names, before)
            for digest in digests if delete else ():
                await store.remove(digest)
                self._sent.discard(digest)
            return len(digests)

        return await asyncio.wrap_future(self._run(collected()))

    def close(self) -> None:
        """Disconnect, and end the thread. What comes later connects again."""
        with self._guard:
            loop, self._loop = self._loop, None
        if loop is None:
            return
        with suppress(TimeoutError, Agent0Error, OSError):
            asyncio.run_coroutine_threadsafe(self._disconnect(), loop).result(CLOSE_S)
        loop.call_soon_threadsafe(loop.stop)
        atexit.unregister(self.close)

    def _run(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Have the thread do ``work``."""
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_turn, args=(self._loop,), name="shared artifacts", daemon=True).start()
                self._connecting, self._store = None, None
                atexit.register(self.close)
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _connected(self) -> SharedStore:
        self._connecting = self._connecting or asyncio.Lock()
        async with self._connecting:
            self._store = self._store or await self._connect()
            return self._store

    async def _disconnect(self) -> None:
        if self._store is not None:
            await self._store.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _send(self, unsent: list[Artifact]) -> None:
        store, slots = await self._connected(), asyncio.Semaphore(PUTS)

        async def send(artifact: Artifact) -> None:
            async with slots:
                await store.put(artifact, self.path(artifact))
            with self._guard:
                self._sent.add(artifact.sha256)
                self._unsent.pop(artifact.sha256, None)

        await asyncio.gather(*map(send, unsent))

    async def _shared(self, artifact: Artifact) -> bool:
        return await (await self._connected()).holds(artifact)

    async def _replaced(self, artifact: Artifact) -> bool:
        """Whether a damaged copy was replaced by that of the shared store; else it is there as before."""
        path = self.path(artifact)
        aside = path.with_name(f".{path.name}.damaged")
        with suppress(FileNotFoundError):  # another process is at it
            path.replace(aside)
        try:
            await self._fetch(artifact)
        except (NotFoundError, LogError):
            return False
        finally:
            if aside.exists() and not path.exists():
                aside.replace(path)
            aside.unlink(missing_ok=True)
        return True

    async def _fetch(self, artifact: Artifact) -> None:
        """Bring ``artifact`` here. Of several processes one fetches, and the others wait; where it ends in the middle,
        the next one goes on."""
        store, path = await self._connected(), self.path(artifact)
        for folder in (self._root, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        while not path.exists():
            with part.open("ab") as own:
                try:
                    fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    await asyncio.sleep(LOOK_S)
                    continue
                if not path.exists():
                    await store.get(artifact, part)
                    os.fsync(own.fileno())
                    part.replace(path)
        part.unlink(missing_ok=True)


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()
