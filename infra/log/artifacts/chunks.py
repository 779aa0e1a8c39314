"""Artifacts in a stream of the log's server, for hosts that share no folder: one message a chunk, under the digest.

A chunk's subject says all there is to know of it, so a transfer that broke goes on with the chunks that are left, and
two who put the same content do no harm. What came is an artifact only when its digest is right.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import IO, Any, TypeVar

from nats.errors import Error
from nats.js.errors import APIError
from nats.js.errors import NotFoundError as NoSuchMessageError

from agent0.errors import DependencyError, LogError, NotFoundError
from agent0.events.values import Artifact
from agent0.infra.log.connection import Link
from agent0.infra.log.nats_server import Server
from agent0.infra.log.publishing import AgainError, DuplicateError, PublishAnswer
from agent0.infra.log.streams import ARTIFACTS
from agent0.infra.storage.files import file_digest

CHUNK = 960 << 10
"""Bytes of a message: a server takes 1 MiB by default, headers included."""
AT_ONCE = 16
"""Chunks under way of one transfer."""
CHUNK_S = 5.0
"""How long one chunk may take before it is asked for, or sent, again."""
PATIENCE_S = 60.0
"""How long one chunk is tried."""
PAUSE_S = 0.2

T = TypeVar("T")


class ArtifactChunks:
    """The stream's side of a store: ``put`` from a file, ``get`` into one."""

    def __init__(self, link: Link, server: Server, patience_s: float = PATIENCE_S) -> None:
        """``server`` is given up with the connection."""
        self._link, self._server, self._patience_s = link, server, patience_s
        self._manager = link.client.jsm(timeout=CHUNK_S)

    async def put(self, artifact: Artifact, path: Path) -> None:
        """Store the content of ``path``: on the servers' disks when this returns. Chunks that are there are not sent.

        Raises:
            DependencyError: the servers cannot be reached, or take no more.
        """
        present = await self._persistently(lambda: self._present(artifact))
        left = [number for number in range(_chunks(artifact)) if number not in present]
        with path.open("rb") as file:
            sent = (self._send(artifact, number, _chunk(file, number)) for number in left)
            async with aclosing(in_order(sent)) as answers:
                async for _ in answers:
                    pass

    async def get(self, artifact: Artifact, path: Path) -> None:
        """Write the content into ``path``, behind what an earlier try left there.

        Raises:
            NotFoundError: the stream has not all of it.
            LogError: what it has is of another digest; ``path`` is gone then.
            DependencyError: the servers cannot be reached.
        """
        with path.open("ab") as file:
            begin = file.tell() // CHUNK
            file.truncate(begin * CHUNK)
            received = (self._receive(artifact, number) for number in range(begin, _chunks(artifact)))
            async with aclosing(in_order(received)) as chunks:
                async for chunk in chunks:
                    file.write(chunk)
        if file_digest(path) != artifact.sha256:
            path.unlink()
            why = "Its servers hold other bytes under its name."
            raise LogError(f"Artifact {artifact.sha256[:12]} is damaged in the shared store.", why)

    async def holds(self, artifact: Artifact) -> bool:
        """Whether the stream has all chunks of it.

        Raises:
            DependencyError: the servers cannot be reached.
        """
        present = await self._persistently(lambda: self._present(artifact))
        return present.issuperset(range(_chunks(artifact)))

    async def close(self) -> None:
        """Disconnect."""
        await self._link.close()
        await self._server.stop()

    async def unnamed(self, names: Collection[str], before: datetime) -> list[str]:
        """Digests in the stream that are none of ``names`` and were put before ``before``."""
        info = await self._manager.stream_info(ARTIFACTS, subjects_filter="a0.art.*.*")
        digests = {subject.split(".")[2] for subject in info.state.subjects or {}} - set(names)
        times = [(await self._manager.get_last_msg(ARTIFACTS, f"a0.art.{d}.*")).time for d in sorted(digests)]
        return [digest for digest, time in zip(sorted(digests), times, strict=True) if time and time < before]

    async def remove(self, digest: str) -> None:
        """Delete all chunks of ``digest``.

        Raises:
            AuthError: this user may not; the administrator of the log's servers may.
        """
        try:
            only = json.dumps({"filter": f"a0.art.{digest}.*"})
            await self._link.request(f"$JS.API.STREAM.PURGE.{ARTIFACTS}", only.encode(), CHUNK_S)
        except (Error, TimeoutError) as error:
            raise self._link.away("delete artifacts") from error

    async def _present(self, artifact: Artifact) -> set[int]:
        """The chunks that the stream has."""
        info = await self._manager.stream_info(ARTIFACTS, subjects_filter=f"a0.art.{artifact.sha256}.*")
        return {int(subject.rpartition(".")[2]) for subject in info.state.subjects or {}}

    async def _send(self, artifact: Artifact, number: int, chunk: bytes) -> None:
        subject = _subject(artifact, number)
        headers = {"Nats-Expected-Last-Subject-Sequence": "0", "Nats-Expected-Stream": ARTIFACTS}

        async def publish() -> None:
            answer = await self._link.request(subject, chunk, CHUNK_S, headers)
            try:
                PublishAnswer.model_validate_json(answer).stored_at()
            except DuplicateError:
                return  # by somebody else, or by a try whose answer was lost

        await self._persistently(publish)

    async def _receive(self, artifact: Artifact, number: int) -> bytes:
        subject = _subject(artifact, number)

        async def ask() -> bytes:
            answer = await self._link.message(f"$JS.API.DIRECT.GET.{ARTIFACTS}.{subject}", timeout_s=CHUNK_S)
            if not (answer.headers or {}).get("Status"):
                return answer.data
            stored = await self._manager.get_last_msg(ARTIFACTS, subject)  # whoever answered may lag behind the leader
            return stored.data or b""

        try:
            chunk = await self._persistently(ask)
        except NoSuchMessageError as error:
            what = f"Artifact {artifact.sha256[:12]} is not in the shared store."
            raise NotFoundError(what, f"Its part {number + 1} of {_chunks(artifact)} is not there.") from error
        if len(chunk) != min(CHUNK, artifact.size - number * CHUNK):
            raise LogError(
                f"Artifact {artifact.sha256[:12]} is damaged in the shared store.", "A part has another size."
            )
        return chunk

    async def _persistently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The result of ``ask``, which is asked again where the servers do not answer."""
        deadline = monotonic() + self._patience_s
        while True:
            try:
                async with asyncio.timeout(2 * CHUNK_S):
                    return await ask()
            except NoSuchMessageError:
                raise
            except (Error, APIError, TimeoutError, AgainError) as error:
                if monotonic() > deadline:
                    why = f"No answer in {self._patience_s:.0f} s: {type(error).__name__} {error}"[:300]
                    fix = "Look whether its servers run; what came so far is kept, and the next try goes on."
                    raise DependencyError("shared artifact store", why, fix) from error
                await asyncio.sleep(PAUSE_S)


async def in_order(asked: Iterable[Coroutine[Any, Any, T]]) -> AsyncGenerator[T, None]:
    """Results in the order of what was asked for, ``AT_ONCE`` under way."""
    under_way: deque[asyncio.Task[T]] = deque()
    try:
        for coroutine in asked:
            under_way.append(asyncio.create_task(coroutine))
            if len(under_way) >= AT_ONCE:
                yield await under_way.popleft()
        while under_way:
            yield await under_way.popleft()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


def _subject(artifact: Artifact, number: int) -> str:
    return f"a0.art.{artifact.sha256}.{number}"


def _chunks(artifact: Artifact) -> int:
    return max(1, -(-artifact.size // CHUNK))


def _chunk(file: IO[bytes], number: int) -> bytes:
    file.seek(number * CHUNK)
    return file.read(CHUNK)
