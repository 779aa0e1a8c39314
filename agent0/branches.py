"""A fork is a run that begins in the middle of another: what happened in it is its parent's past and then its own."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from agent0.errors import LogError
from agent0.ports import History
from events.base import Recorded
from events.runs import RunStarted

DEEPEST = 100
"""Forks of forks; more is a circle."""


@dataclass(frozen=True)
class Stretch:
    """A run's own events up to ``until`` (0: to its present end)."""

    run: str
    until: int = 0


async def ancestry(history: History, run: str) -> tuple[Stretch, ...]:
    """The stretches that make up ``run``, oldest first, itself last. A run that never started has just its own.

    Raises:
        LogError: more than 100 parents, which only a forged log has.
    """
    found = [Stretch(run)]
    while len(found) <= DEEPEST:
        start = await _start(history, found[0].run)
        if start is None or not start.parent:
            return tuple(found)
        found.insert(0, Stretch(start.parent, start.parent_seq))
    raise LogError(f"Run {run} has more than {DEEPEST} parents.", "No fork does that.", "Was the log altered?")


async def read_branch(
    history: History, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0
) -> AsyncIterator[Recorded]:
    """Events of ``run`` and of the past it shares with its parents, in stream order, with after < seq <= until."""
    for stretch in await ancestry(history, run):
        end = min((n for n in (stretch.until, until) if n), default=0)
        if end and end <= after:
            continue
        async for recorded in history.read(stretch.run, types, after, end):
            yield recorded


async def _start(history: History, run: str) -> RunStarted | None:
    async for recorded in history.read(run, ["RunStarted"]):
        if isinstance(recorded.event, RunStarted):
            return recorded.event
    return None
