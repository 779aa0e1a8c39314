"""The tasks that a run accepted before, ready for nearest-neighbour queries. Each batch adds only what is new.

What is kept is a cache. It is identified by run and stream position, both of which mean the same for ever, is compared
with the log before it is used, and rebuilt from the log where it is missing. A fork has its own.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent0.events.base import Recorded
from agent0.events.tasks import TaskAccepted
from agent0.events.values import Task
from agent0.ports.models import Embedder
from agent0.ports.storage import History
from agent0.state.run_state import RunState
from agent0.tasks.screening import Archive

KEPT = 4
"""Runs at once; one more takes the place of what was not used longest."""


@dataclass
class RunArchive:
    """The cached archive of one run up to the event ``last``: identities, and how many vectors the embedder holds."""

    last: Recorded | None = None
    size: int = 0
    canonicals: set[str] = field(default_factory=set)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def clear(self) -> None:
        """Empty the archive, as if nothing had been read."""
        self.last, self.size, self.canonicals = None, 0, set()


class RunArchives:
    """The cached archives of the most recent runs, for one embedder."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, RunArchive] = OrderedDict()

    def of(self, run: str) -> RunArchive:
        """The archive of ``run``, an empty one where none is cached."""
        kept = self._held.setdefault(run, RunArchive())
        self._held.move_to_end(run)
        while len(self._held) > KEPT:
            self._held.popitem(last=False)
        return kept


async def archive_of(
    run: RunState,
    history: History,
    embedder: Embedder,
    proposals: Mapping[str, Task],
    vectors: Mapping[str, Sequence[float]],
) -> Archive:
    """Compare proposals with everything accepted before this iteration's tasks were requested.

    Returns which of the ``proposals`` it has, and its highest similarity to each of ``vectors`` (by task id).
    Tasks that another embedder embedded count by identity only.
    """
    position = run.starts[-1]
    if not run.iteration:
        return Archive(position=position)
    kept = embedder.archives.of(run.run)
    async with kept.lock:
        near = await _caught_up(kept, run.run, position, history, embedder, list(vectors.values()))
        return Archive(
            canonicals=frozenset(
                proposal.canonical for proposal in proposals.values() if proposal.canonical in kept.canonicals
            ),
            size=kept.size,
            nearest=dict(zip(vectors, near, strict=True)),
            position=position,
        )


async def _caught_up(
    kept: RunArchive, run: str, position: int, history: History, embedder: Embedder, queries: list[Sequence[float]]
) -> list[float]:
    """Similarities of ``queries`` to everything accepted up to ``position``, which ``kept`` then holds."""
    fresh = await _since(kept, run, position, history)
    near = await embedder.search(run, kept.size, _vectors(fresh, embedder), queries)
    if near is None:  # the process that kept them is another one now
        kept.clear()
        fresh = await _since(kept, run, position, history)
        near = await embedder.search(run, 0, _vectors(fresh, embedder), queries)
    assert near is not None  # noqa: S101 - nothing is kept before nothing
    kept.size += len(_vectors(fresh, embedder))
    kept.canonicals.update(event.proposal.canonical for _, event in fresh)
    kept.last = fresh[-1][0] if fresh else kept.last
    return near


Accepted = list[tuple[Recorded, TaskAccepted]]


async def _since(kept: RunArchive, run: str, position: int, history: History) -> Accepted:
    """What was accepted after the archive's last event and up to ``position``. An archive whose last event is not in
    the log at its place, or lies beyond ``position``, is cleared."""
    last = kept.last
    accepted = await _accepted(history, run, last.seq - 1 if last else 0, position)
    if last is None:
        return accepted
    if accepted and accepted[0][0] == last:
        return accepted[1:]
    kept.clear()
    return await _accepted(history, run, 0, position)


async def _accepted(history: History, run: str, after: int, until: int) -> Accepted:
    recorded = [event async for event in history.read(run, ["TaskAccepted"], after=after, until=until)]
    return [(entry, entry.event) for entry in recorded if isinstance(entry.event, TaskAccepted)]


def _vectors(accepted: Accepted, embedder: Embedder) -> list[Sequence[float]]:
    return [event.embedding for _, event in accepted if event.embedder == embedder.version and event.embedding]
