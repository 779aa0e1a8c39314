"""What a run accepted before, ready to be asked for what is nearest. Each batch adds only what is new since the last.

What is kept is a cache: it is told by the run and a stream position, both of which mean the same for ever, is compared
with the log before it is used, and made again from the log where it is not there. A fork has its own.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent0.ports.models import Embedder
from agent0.ports.storage import History
from agent0.state.run_state import RunState
from agent0.tasks.screening import Archive
from events.base import Recorded
from events.tasks import TaskAccepted
from events.values import Task

KEPT = 4
"""Runs at once; one more takes the place of what was not used longest."""


@dataclass
class Shelf:
    """Everything accepted up to ``last``: identities, and how many vectors the embedder keeps of it."""

    last: Recorded | None = None
    size: int = 0
    canonicals: set[str] = field(default_factory=set)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def clear(self) -> None:
        """As if nothing had been read."""
        self.last, self.size, self.canonicals = None, 0, set()


class Shelves:
    """A shelf a run, for one embedder."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, Shelf] = OrderedDict()

    def of(self, run: str) -> Shelf:
        """The shelf of ``run``, an empty one where there is none."""
        shelf = self._held.setdefault(run, Shelf())
        self._held.move_to_end(run)
        while len(self._held) > KEPT:
            self._held.popitem(last=False)
        return shelf


async def archive_of(
    run: RunState,
    history: History,
    embedder: Embedder,
    known: Mapping[str, Task],
    vectors: Mapping[str, Sequence[float]],
) -> Archive:
    """Of everything accepted before this iteration's tasks were requested: which of the ``known`` proposals it has, and
    how near it is to each of ``vectors`` (by task id). Tasks that another embedder measured count by identity only."""
    position = run.starts[-1]
    if not run.iteration:
        return Archive(position=position)
    shelf = embedder.shelves.of(run.run)
    async with shelf.lock:
        near = await _caught_up(shelf, run.run, position, history, embedder, list(vectors.values()))
        return Archive(
            canonicals=frozenset(one.canonical for one in known.values() if one.canonical in shelf.canonicals),
            size=shelf.size,
            nearest=dict(zip(vectors, near, strict=True)),
            position=position,
        )


async def _caught_up(
    shelf: Shelf, run: str, position: int, history: History, embedder: Embedder, queries: list[Sequence[float]]
) -> list[float]:
    """Similarities of ``queries`` to everything up to ``position``, which ``shelf`` then holds."""
    fresh = await _since(shelf, run, position, history)
    near = await embedder.search(run, shelf.size, _vectors(fresh, embedder), queries)
    if near is None:  # the process that kept them is another one now
        shelf.clear()
        fresh = await _since(shelf, run, position, history)
        near = await embedder.search(run, 0, _vectors(fresh, embedder), queries)
    assert near is not None  # noqa: S101 - nothing is kept before nothing
    shelf.size += len(_vectors(fresh, embedder))
    shelf.canonicals.update(event.proposal.canonical for _, event in fresh)
    shelf.last = fresh[-1][0] if fresh else shelf.last
    return near


Accepted = list[tuple[Recorded, TaskAccepted]]


async def _since(shelf: Shelf, run: str, position: int, history: History) -> Accepted:
    """What was accepted after the shelf's last and up to ``position``. A shelf whose last is not in the log where it
    was, or lies beyond, is cleared."""
    last = shelf.last
    found = await _accepted(history, run, last.seq - 1 if last else 0, position)
    if last is None:
        return found
    if found and found[0][0] == last:
        return found[1:]
    shelf.clear()
    return await _accepted(history, run, 0, position)


async def _accepted(history: History, run: str, after: int, until: int) -> Accepted:
    told = [one async for one in history.read(run, ["TaskAccepted"], after=after, until=until)]
    return [(one, one.event) for one in told if isinstance(one.event, TaskAccepted)]


def _vectors(found: Accepted, embedder: Embedder) -> list[Sequence[float]]:
    return [event.embedding for _, event in found if event.embedder == embedder.version and event.embedding]
