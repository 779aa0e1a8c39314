"""Part of the rim: what a handle of a run needs of where the run is: a data folder here, or a server."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from agent0.config.setting_entries import nearest
from agent0.errors import NotFoundError
from agent0.events import event_types
from agent0.events.base import Recorded
from agent0.infra.storage.row_formats import RowSource
from agent0.projections.base import Row
from agent0.projections.runs import RunFilter

Questions = str | Path | RowSource
"""A file of questions with answers, or the rows themselves: mappings, or a table of pandas, polars or Arrow."""
Decision = Literal["pause", "resume", "cancel"]
CHANGES = {
    "RunStarted": "running",
    "RunResumed": "running",
    "RunPaused": "paused",
    "RunFailed": "failed",
    "RunFinished": "finished",
    "RunCancelled": "cancelled",
    "RunDeleted": "deleted",
}
"""Type of an event -> the status that a run has behind it."""
OVER = ("finished", "failed", "cancelled", "deleted")
ENDS = tuple(kind for kind, status in CHANGES.items() if status in OVER)
LOOK_S = 0.2
"""How often tables are looked into for what is new."""


@dataclass(frozen=True)
class StartOrder:
    """A run to start: its profile (None: the usual one), settings by dotted key beside it, its name for people, its
    questions with the held-out ones, a folder of documents that its teacher asks about, and the adapter that its
    student begins with: a folder, of a server a checkpoint."""

    profile: str | None
    settings: Mapping[str, object]
    name: str = ""
    questions: Questions | None = None
    heldout: Questions | None = None
    documents: str | Path | None = None
    adapter: str | Path | None = None


class Transport(Protocol):
    """Carries what is asked of runs to where they are. Everywhere ``run`` is an id."""

    async def resolve(self, name: str) -> str:
        """The id of the run called ``name``: id, unique beginning, name, LAST. Raises NotFoundError."""
        ...

    async def runs(self, chosen: RunFilter, *, hidden: bool, forks: bool) -> list[str]:
        """The ids of runs that ``chosen`` lets through, newest first; ``hidden`` and deleted ones, too, or ``forks``
        alone. Raises ConfigError where no run can have that status."""
        ...

    async def overview(self, run: str) -> Row:
        """What the run came to, as `agent0 run show --json` prints it."""
        ...

    async def metrics(self, run: str) -> Sequence[Row]:
        """A row for each iteration, then for each step of the optimiser: ``step`` and every series."""
        ...

    async def ledger(self, run: str) -> Sequence[Row]:
        """How often it asked each row of its file of questions. Raises NotFoundError where it has none."""
        ...

    def events(self, run: str, types: str, task: str, after: int, *, follow: bool) -> AsyncIterator[Sequence[Recorded]]:
        """Events behind the sequence ``after`` in parts, of ``types`` (by commas; empty: all) and ``task``; ``follow``:
        what comes, too, without an end."""
        ...

    async def start(self, start: StartOrder) -> str:
        """Start a run and return its id once it has begun."""
        ...

    async def fork(self, run: str, at: int, settings: Mapping[str, object], name: str) -> str:
        """Start a run in the middle of another and return its id once it has begun."""
        ...

    async def decide(self, run: str, decision: Decision, reason: str) -> None:
        """Pause, resume or cancel. Raises OperationError where it is in no state for it."""
        ...

    async def conclude(self, run: str, last: Recorded) -> None:
        """Wait until who executes the run is done with it, where that is known here and ``last`` ended it. Raises what
        the execution failed of."""
        ...


def required_types(types: str) -> str:
    """Return ``types``, names of event classes between commas, without spaces around them.

    Raises:
        NotFoundError: there is no such class.
    """
    names = [name.strip() for name in types.split(",")] if types else []
    for name in names:
        if name not in event_types():
            raise NotFoundError(f"There is no event type {name[:80]!r}.", nearest(name, list(event_types())))
    return ",".join(names)
