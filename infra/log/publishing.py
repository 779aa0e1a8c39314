"""How one event is sent to the server, and what its answer means."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

from pydantic import BaseModel

from agent0.errors import DependencyError, LogError
from agent0.events.base import TRACE_HEADER, Recorded, traceparent
from agent0.infra.log.streams import MAX_MESSAGE

MAX_BODY = MAX_MESSAGE - 4096
"""Bytes of an event's body: the rest is for headers. Whatever is larger belongs into an artifact."""
LONGEST_WHY = 300
NO_STREAM = 10059
"""The server's code for a log that was never made."""
_DUPLICATE = 10201
_NOT_NEWEST = frozenset({10071, 10164})
_AGAIN = frozenset({10008, 10158, 10176, 10210})
"""No leader just now; the same is just being stored; a batch that a lost connection or leader tore in two; too many
batches at once. The next try may do, or find it stored."""
_FULL = frozenset({10023, 10047, 10077, 10028, 10002})
"""Out of disk, of reserved storage or of the stream's own max_bytes: appending is refused, history is kept."""


class DuplicateError(Exception):
    """Some id of a batch is already stored, or another event of its subject came first."""


class AgainError(Exception):
    """The server refused an append for this moment; the next try may do."""


def body_of(recorded: Recorded) -> bytes:
    """Encode an event as the body that is stored.

    Raises:
        LogError: it is too large, or holds what no JSON can.
    """
    try:
        body = recorded.to_json()
    except (ValueError, RecursionError) as error:
        why = f"{recorded.type} of {recorded.handler or 'a person'}: {str(error)[:LONGEST_WHY]}"
        raise LogError(
            "An event cannot be written as JSON.", why, "Clean or refuse the text where it comes in."
        ) from error
    if len(body) > MAX_BODY:
        why = f"{recorded.type} has {len(body)} bytes; an event holds at most {MAX_BODY}."
        raise LogError("An event is too large.", why, "Put its content into an artifact.")
    return body


def marks(recorded: Recorded, newest: Mapping[str, int] | None = None, among: str = "") -> dict[str, str]:
    """Its headers. ``newest``: id -> where the newest event of the subjects ``among`` must stand; of ids that are not
    in it that is not asked."""
    at = (newest or {}).get(recorded.id)
    expected = {} if at is None else {"Nats-Expected-Last-Subject-Sequence": str(at)}
    if expected and among != recorded.subject:
        expected["Nats-Expected-Last-Subject-Sequence-Subject"] = among
    parent = traceparent(recorded.run, recorded.task, recorded.attempt)
    return {"Nats-Msg-Id": recorded.id, TRACE_HEADER: parent, **expected}


class ServerRefusal(BaseModel):
    """Why the server refused a request: its own code, the status that is nearest in HTTP, and in words."""

    err_code: int | None = None
    code: int | None = None
    description: str = ""


class PublishAnswer(BaseModel):
    """The server's answer to a publish: where the event is stored and whether it was before, or ``error``."""

    seq: int = 0
    duplicate: bool = False
    error: ServerRefusal | None = None

    def stored_at(self) -> int:
        """The sequence of the event.

        Raises:
            DependencyError: no space. LogError: any other refusal. ValueError: it is no answer.
        """
        if self.error is None and self.seq:
            return self.seq
        if self.error is None:
            raise ValueError("the answer to a publish names no sequence")
        code, description = self.error.err_code, self.error.description
        if code == _DUPLICATE or code in _NOT_NEWEST:
            raise DuplicateError
        if code in _AGAIN:
            raise AgainError(description)
        if code in _FULL or self.error.code == 503:
            fix = "Free disk space or raise nats.max_bytes, then run `agent0 log init`; nothing is lost."
            raise DependencyError("log", f"It refuses to store: {description}.", fix)
        raise LogError("The log refused an append.", f"{description} ({code}).", "Run `agent0 doctor`.")


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
