"""Group commit: the effects of all reactions that finish within some milliseconds share one fsync.

Whole reactions only: the effects of one land all or none, whoever they were batched with.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent0.errors import Agent0Error, AuthError, DependencyError, LogError, OperationError, bare_url, clean_text
from agent0.events.base import Recorded
from agent0.infra.bus.log_wait import LogWait
from agent0.infra.log.connection import die
from agent0.infra.log.event_log import BATCH, Log

RETRY_S = 1.0


@dataclass
class _AppendTask:
    effects: Sequence[Recorded]
    stored: asyncio.Future[list[int]]


class Committer:
    """One task that appends for the whole process. ``batches`` and ``reactions`` count what it did. Where that task
    fails, whatever waits for it fails too, and ``fatal`` is called with the reason: nothing more could be stored."""

    def __init__(
        self, log: Log, gather_s: float, fatal: Callable[[str], None] = die, wait: LogWait | None = None
    ) -> None:
        """``wait`` says why nothing is stored, while that is so."""
        self._log, self._gather_s, self._fatal, self._wait = log, gather_s, fatal, wait
        self._queue: asyncio.Queue[_AppendTask] = asyncio.Queue()
        self._group: list[_AppendTask] = []
        self._left: _AppendTask | None = None
        self._task: asyncio.Task[None] | None = None
        self.batches = self.reactions = 0

    def start(self) -> None:
        """Begin to append."""
        self._task = asyncio.create_task(self._run(), name="group commit")
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Stop. What is not stored by now will be done again by whoever receives its cause."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if self._wait:
            self._wait.end()

    async def commit(self, effects: Sequence[Recorded]) -> list[int]:
        """Store the effects of one reaction, all or none; returns when they are durable.

        While the log is away this waits.

        Raises:
            OperationError: more effects than one batch holds.
            LogError: the log refuses them, or nothing can be stored any more.
        """
        if len(effects) > BATCH:
            why = f"{len(effects)} effects; one reaction may have {BATCH}, so that they land all or none."
            raise OperationError("A reaction has too many effects.", why, "Split it into several events.")
        if self._task is None or self._task.done():
            raise _unstorable("Nothing is stored any more by this process.")
        stored: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(_AppendTask(effects, stored))
        return await stored

    async def _run(self) -> None:
        while True:
            await self._gather()
            await self._append([r for r in self._group if not r.stored.cancelled()])

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Settle what waits for a task that has ended, and end the process where it failed."""
        error = None if task.cancelled() else task.exception()
        waiting = [*self._group, *([self._left] if self._left else [])]
        while not self._queue.empty():
            waiting.append(self._queue.get_nowait())
        for reaction in waiting:
            if error is None:
                reaction.stored.cancel()
            else:
                _settle(reaction, _unstorable(f"{type(error).__name__}: {error}"))
        if error is not None:
            why = clean_text(bare_url(str(error)))[:500]
            self._fatal(f"effects cannot be stored: {type(error).__name__}: {why}; start again: nothing is lost")

    async def _gather(self) -> None:
        """Wait for one finished reaction, then a moment for others; at most one batch full."""
        first, self._left = self._left or await self._queue.get(), None
        self._group = [first]
        await asyncio.sleep(self._gather_s)
        size = len(first.effects)
        while not self._queue.empty():
            following = self._queue.get_nowait()
            size += len(following.effects)
            if size > BATCH:
                self._left = following
                break
            self._group.append(following)

    async def _append(self, group: list[_AppendTask]) -> None:
        if not group:
            return
        try:
            seqs = iter(await self._persist([e for r in group for e in r.effects]))
        except AuthError:
            raise  # no fault of a reaction: this process may store nothing of the kind, and another may
        except Agent0Error as error:
            if len(group) == 1:
                _settle(group[0], error)
                return
            for reaction in group:  # one bad reaction must not take the others with it
                await self._append([reaction])
            return
        self.batches += 1
        self.reactions += len(group)
        for reaction in group:
            _settle(reaction, [next(seqs) for _ in reaction.effects])

    async def _persist(self, effects: list[Recorded]) -> list[int]:
        while True:
            try:
                sequences = await self._log.append(effects)
            except DependencyError as error:
                if self._wait:
                    self._wait.begin(bare_url(f"{error.what} {error.why}"))
                await asyncio.sleep(RETRY_S)
                continue
            if self._wait:
                self._wait.end()
            return sequences


def _unstorable(why: str) -> LogError:
    return LogError("Effects were not stored.", why, "Start this process again: their causes are delivered again.")


def _settle(reaction: _AppendTask, outcome: list[int] | Agent0Error) -> None:
    if reaction.stored.done():
        return
    if isinstance(outcome, Agent0Error):
        reaction.stored.set_exception(outcome)
    else:
        reaction.stored.set_result(outcome)
