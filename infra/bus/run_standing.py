"""Which runs are under way, with which priority, and what of each waits for handlers: a fold over a few events."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from agent0.events.base import Recorded
from agent0.events.runs import (
    PRIORITIES,
    PRIORITY,
    PriorityChanged,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
)
from agent0.infra.log.event_log import Log
from agent0.infra.log.streams import EVENTS, stream_consumers

CONTROL = (
    *("RunStarted", "RunPaused", "RunResumed", "RunFailed", "RunCancelled", "RunFinished"),
    "PriorityChanged",
)


class RunsUnderWay:
    """The runs that go on, and the priorities that people gave them."""

    def __init__(self) -> None:
        self.begun: dict[str, Recorded] = {}
        """Runs under way, with what began or resumed them."""
        self.priorities: dict[str, int] = {}

    def note(self, recorded: Recorded) -> None:
        """Fold in an event of one of the kinds ``CONTROL``."""
        match recorded.event:
            case RunStarted(priority=priority) | PriorityChanged(priority=priority):
                self.priorities[recorded.run] = min(max(priority, PRIORITIES[0]), PRIORITIES[1])
        match recorded.event:
            case RunStarted(imported=None) | RunResumed():
                self.begun[recorded.run] = recorded
            case RunPaused() | RunFailed() | RunCancelled() | RunFinished():
                self.begun.pop(recorded.run, None)


@dataclass(frozen=True)
class RunStanding:
    """A run under way: its ``priority``, its fair ``share`` of slots (0 to 1) among runs with work, None where it has
    none, and events that ``wait`` for handlers or are ``in_hand``."""

    run: str
    priority: int
    share: float | None
    wait: int
    in_hand: int


async def run_standings(log: Log, handlers: Collection[str]) -> list[RunStanding]:
    """How each run under way stands with ``handlers``, oldest first.

    Raises:
        DependencyError: the log does not answer.
    """
    runs, waits, in_hand = RunsUnderWay(), Counter[str](), Counter[str]()
    if last := await log.last_seq():
        async for recorded in log.read(types=CONTROL, until=last):
            runs.note(recorded)
    for consumer in await stream_consumers(log.client, EVENTS):
        handler, _, run = consumer.name.partition("-")
        if handler in handlers:
            waits[run] += consumer.num_pending or 0
            in_hand[run] += consumer.num_ack_pending or 0
    priorities = {run: runs.priorities.get(run, PRIORITY) for run in runs.begun}
    total = sum(priority for run, priority in priorities.items() if waits[run] or in_hand[run])
    return [
        RunStanding(run, priority, priority / total if waits[run] or in_hand[run] else None, waits[run], in_hand[run])
        for run, priority in priorities.items()
    ]
