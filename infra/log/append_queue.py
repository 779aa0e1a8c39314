"""Appends that nobody waits for: made in order, one at a time, and tried again while the log is away."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from agent0.errors import DependencyError

RETRY_S = 1.0
MOST = 256

Job = Callable[[], Awaitable[None]]


class AppendQueue:
    """One task that does jobs in the order in which they were put in.

    A job that fails because the log or a disk is away is done again until it succeeds: doing it twice must do no harm.
    Any other failure is raised by the next ``check``, and the queue goes on. At most ``most`` jobs wait.
    """

    def __init__(self, most: int = MOST, retry_s: float = RETRY_S) -> None:
        self._most, self._retry_s = most, retry_s
        self._waiting: deque[tuple[Job, asyncio.Future[None]]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._failed: BaseException | None = None

    async def put(self, job: Job) -> None:
        """Have ``job`` done later; waits only where too many do."""
        while len(self._waiting) >= self._most:
            await asyncio.wait([self._waiting[0][1]])
        self._waiting.append((job, asyncio.get_running_loop().create_future()))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work(), name="append queue")

    def check(self) -> None:
        """Raise what a job failed with for good, once."""
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    async def join(self) -> None:
        """Wait until all jobs that were put in before are done."""
        if self._waiting:
            await asyncio.wait([self._waiting[-1][1]])

    async def close(self, patience_s: float) -> None:
        """Wait as ``join`` does, but no longer than ``patience_s``; what is left then is not done."""
        if self._waiting:
            await asyncio.wait([self._waiting[-1][1]], timeout=patience_s)
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    async def _work(self) -> None:
        try:
            while self._waiting:
                failed = await self._do(self._waiting[0][0])
                if failed is not None:
                    logging.getLogger(__name__).error("an append failed for good: %s", type(failed).__name__)
                    self._failed = failed
                self._waiting.popleft()[1].set_result(None)
        finally:
            while self._waiting:  # cancelled: nobody waits for what is not done
                self._waiting.popleft()[1].cancel()

    async def _do(self, job: Job) -> BaseException | None:
        while True:
            [failed] = await asyncio.gather(job(), return_exceptions=True)
            if not isinstance(failed, DependencyError):
                return failed
            await asyncio.sleep(self._retry_s)
