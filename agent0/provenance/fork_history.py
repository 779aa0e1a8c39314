"""The history of a fork: a run that begins in the middle of another has its parent's past and then its own."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from agent0.errors import LogError
from agent0.events.base import Recorded
from agent0.events.runs import RunStarted
from agent0.ports.storage import History

DEEPEST = 100
"""Forks of forks; more is a circle."""


@dataclass(frozen=True)
class Stretch:
    """A run's own events up to ``until`` (0: its present end), without those of tasks that a fork requested again."""

    run: str
    until: int = 0
    without: frozenset[str] = frozenset()


async def ancestry(history: History, run: str) -> tuple[Stretch, ...]:
    """The stretches that make up ``run``, oldest first, itself last. A run that never started has just its own.

    Raises:
        LogError: more than 100 parents, which only a forged log has.
    """
    stretches = [Stretch(run)]
    while len(stretches) <= DEEPEST:
        start = await _start(history, stretches[0].run)
        if start is None or not start.parent:
            return tuple(stretches)
        again = stretches[0].without | set(start.redone)
        stretches.insert(0, Stretch(start.parent, start.parent_seq, again))
    raise LogError(f"Run {run} has more than {DEEPEST} parents.", "No fork does that.", "Was the log altered?")


async def read_branch(
    history: History, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0
) -> AsyncIterator[Recorded]:
    """Events of ``run`` and of the past it shares with its parents, in stream order, with after < seq <= until."""
    for stretch in await ancestry(history, run):
        async for recorded in read_stretch(history, stretch, types, after, until):
            yield recorded


async def read_stretch(
    history: History, stretch: Stretch, types: Sequence[str] = (), after: int = 0, until: int = 0
) -> AsyncIterator[Recorded]:
    """The part of ``stretch`` with after < seq <= until."""
    end = min((n for n in (stretch.until, until) if n), default=0)
    if end and end <= after:
        return
    async for recorded in history.read(stretch.run, types, after, end):
        if recorded.task not in stretch.without:
            yield recorded


class Branches:
    """Plays ``agent0.ports.storage.History``: a fork's past is part of it."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._known: dict[str, tuple[Stretch, ...]] = {}

    async def read(
        self, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0
    ) -> AsyncIterator[Recorded]:
        """As ``History.read``; ancestry is looked up once a run, since it never changes."""
        if run not in self._known:
            self._known[run] = await ancestry(self._history, run)
        for stretch in self._known[run]:
            async for recorded in read_stretch(self._history, stretch, types, after, until):
                yield recorded


async def past_of(history: History, run: str) -> AsyncIterator[Recorded]:
    """Read what happened to a run before it began: all of its parents' events up to the fork."""
    for stretch in (await ancestry(history, run))[:-1]:
        async for recorded in read_stretch(history, replace(stretch, without=frozenset())):
            yield recorded


async def read_whole(history: History, run: str, until: int = 0) -> AsyncIterator[Recorded]:
    """Read everything that a run's state is folded from: its parents' events, then its own up to ``until`` (0: its
    present end)."""
    async for recorded in past_of(history, run):
        yield recorded
    async for recorded in history.read(run, until=until):
        yield recorded


async def _start(history: History, run: str) -> RunStarted | None:
    async for recorded in history.read(run, ["RunStarted"]):
        if isinstance(recorded.event, RunStarted):
            return recorded.event
    return None
