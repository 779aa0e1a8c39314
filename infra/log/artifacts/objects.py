"""Artifacts in a bucket of any store that speaks S3, for hosts that share no folder: one object each, under its digest.

Where the store is and its keys are what every client of S3 reads from the environment: ``AWS_ENDPOINT_URL``,
``AWS_REGION``, ``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Collection
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import TypeVar
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from agent0.errors import AuthError, ConfigError, DependencyError, LogError, NotFoundError
from agent0.events.values import Artifact
from agent0.infra.log.artifacts.chunks import AT_ONCE, PATIENCE_S, PAUSE_S, in_order
from agent0.infra.storage.files import file_digest

PART = 8 << 20
"""Bytes of a part, both ways; the last one is smaller."""
PART_S = 60.0
"""How long one part may take before it is asked for, or sent, again."""
CONNECT_S = 5.0

_digest = re.compile(r"[0-9a-f]{64}")
T = TypeVar("T")


class ArtifactObjects:
    """The bucket's side of a store: ``put`` from a file, ``get`` into one."""

    def __init__(self, url: str, patience_s: float = PATIENCE_S) -> None:
        """``url`` is ``s3://BUCKET`` or ``s3://BUCKET/FOLDER``.

        Raises:
            ConfigError: the environment does not fit together.
        """
        parts = urlsplit(url)
        self._folder, self._patience_s = parts.path.strip("/"), patience_s
        plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
        try:
            self._store = S3Store(
                parts.netloc,
                client_options={
                    "allow_http": plain,
                    "timeout": f"{PART_S:.0f}s",
                    "connect_timeout": f"{CONNECT_S:.0f}s",
                },
                retry_config={"max_retries": 2},
            )
        except (BaseError, ValueError) as error:
            raise ConfigError(
                f"The store {url} cannot be used.", _reason(error), "Check the AWS_ variables."
            ) from error

    async def put(self, artifact: Artifact, path: Path) -> None:
        """Store the content of ``path``, in parts of which many are under way; one that is there is not sent again.

        Raises:
            DependencyError: the store cannot be reached, or takes no more. AuthError: it refuses these keys.
        """
        key, deadline = self._key(artifact.sha256), monotonic() + self._patience_s
        parts = artifact.size > PART

        async def send() -> None:
            await obstore.put_async(
                self._store, key, path, use_multipart=parts, chunk_size=PART, max_concurrency=AT_ONCE
            )

        why = fix = ""
        while await self._size(artifact) != artifact.size:
            if why and monotonic() > deadline:
                raise DependencyError("shared artifact store", why, fix)
            await asyncio.sleep(PAUSE_S if why else 0)
            try:
                await self._persistently(send)
                why, fix = f"It does not hold the {artifact.size:,} bytes that it took.", "Look whether it works."
            except FileNotFoundError as error:  # no bucket; or all parts are there, and the answer to the last was lost
                why, fix = _reason(error), "Make the bucket, or name another: artifacts.store"

    async def get(self, artifact: Artifact, path: Path) -> None:
        """Write the content into ``path``, behind what an earlier try left there.

        Raises:
            NotFoundError: the bucket has it not. AuthError: the store refuses these keys.
            LogError: what it has is of another digest; ``path`` is gone then.
            DependencyError: the store cannot be reached.
        """
        size = await self._size(artifact)
        if size is None:
            raise NotFoundError(f"Artifact {artifact.sha256[:12]} is not in the shared store.")
        if size == artifact.size:
            await self._receive(artifact, path)
        if size != artifact.size or file_digest(path) != artifact.sha256:
            path.unlink(missing_ok=True)
            why = "Its bucket holds other bytes under its name."
            raise LogError(f"Artifact {artifact.sha256[:12]} is damaged in the shared store.", why)

    async def holds(self, artifact: Artifact) -> bool:
        """Whether the bucket has as many bytes under its name.

        Raises:
            DependencyError: the store cannot be reached. AuthError: it refuses these keys.
        """
        return await self._size(artifact) == artifact.size

    async def close(self) -> None:
        """Connections end with the process."""

    async def unnamed(self, names: Collection[str], before: datetime) -> list[str]:
        """Digests in the bucket that are none of ``names`` and were put before ``before``."""

        async def listed() -> list[str]:
            prefix = f"{self._folder}/" if self._folder else None
            return [
                digest
                async for page in obstore.list(self._store, prefix)
                for entry in page
                if entry["last_modified"] < before
                and _digest.fullmatch(digest := entry["path"].rpartition("/")[2])
                and entry["path"] == self._key(digest)  # others may keep objects beside ours
            ]

        return sorted(set(await self._persistently(listed)) - set(names))

    async def remove(self, digest: str) -> None:
        """Delete what has ``digest``.

        Raises:
            AuthError: these keys may not.
        """
        await self._persistently(lambda: obstore.delete_async(self._store, self._key(digest)))

    def _key(self, digest: str) -> str:
        return f"{self._folder}/{digest}" if self._folder else digest

    async def _size(self, artifact: Artifact) -> int | None:
        """Bytes that the bucket has under its name; None where it has none."""
        try:
            facts = await self._persistently(lambda: obstore.head_async(self._store, self._key(artifact.sha256)))
        except FileNotFoundError:
            return None
        return facts["size"]

    async def _receive(self, artifact: Artifact, path: Path) -> None:
        with path.open("ab") as file:
            begin = min(file.tell(), artifact.size) // PART * PART
            file.truncate(begin)
            wanted = (self._part(artifact, start) for start in range(begin, artifact.size, PART))
            async with aclosing(in_order(wanted)) as parts:
                async for part in parts:
                    file.write(part)

    async def _part(self, artifact: Artifact, start: int) -> memoryview:
        length = min(PART, artifact.size - start)

        async def ask() -> memoryview:
            key = self._key(artifact.sha256)
            part = memoryview(await obstore.get_range_async(self._store, key, start=start, length=length))
            if len(part) != length:
                raise TimeoutError("A part came short.")
            return part

        return await self._persistently(ask)

    async def _persistently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The result of ``ask``, which is asked again where the store does not answer."""
        deadline = monotonic() + self._patience_s
        while True:
            try:
                return await ask()
            except FileNotFoundError:
                raise
            except (PermissionDeniedError, UnauthenticatedError, PermissionError) as error:
                fix = "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and what they may do in this bucket."
                raise AuthError("The shared artifact store refused.", _reason(error), fix) from error
            except (BaseError, OSError, TimeoutError) as error:
                if monotonic() > deadline:
                    fix = "Look whether it runs, and AWS_ENDPOINT_URL; what came so far is kept, the next try goes on."
                    raise DependencyError("shared artifact store", _reason(error), fix) from error
                await asyncio.sleep(PAUSE_S)


def _reason(error: BaseException) -> str:
    """The error's first line: what follows is for those who write such clients."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
