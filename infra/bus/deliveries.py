"""What is to be done about one message: what the server delivered, the cause to react to, and what is known of it."""

import json
from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, Self

from agent0.events.alarms import DependencyLost
from agent0.events.base import Event, Recorded
from agent0.events.runs import RunCancelled, RunFailed, RunFinished, RunPaused
from agent0.infra.bus.run_views import RunView
from agent0.infra.log.streams import ANY_TIME, Reactor

SUSPECT = 3
"""After so many deliveries that ended without a word, as they do with their process, a beginning is an event."""


class Reaction(Reactor, Protocol):
    """A handler as the bus calls it: cause, run state and ports in, effects out."""

    def __call__(self, cause: Recorded, run: Any, ports: Mapping[str, object]) -> Awaitable[list[Event]]:
        """React to ``cause``, given the state of its run right after it; effects in order."""
        ...


class Delivery(Protocol):
    """One delivery of one message from the log, to be acknowledged or returned."""

    recorded: Recorded
    deliveries: int
    stored_at: datetime
    of_run: bool
    """Whether it came by its run's own consumer."""

    async def ack(self) -> None:
        """Done: never again."""
        ...

    async def nack(self, delay_s: float) -> None:
        """Again after ``delay_s``."""
        ...

    def working(self) -> AbstractContextManager[None]:
        """Say to the server regularly that this is still being worked on."""
        ...


@dataclass(frozen=True)
class Advisory:
    """The server gave up delivering ``event_seq`` to ``handler``."""

    handler: str
    event_seq: int
    deliveries: int

    @classmethod
    def read(cls, body: bytes) -> Self:
        """From the server's own notice."""
        notice = json.loads(body)
        return cls(notice["consumer"].partition("-")[0], notice["stream_seq"], notice.get("deliveries", 0))


class RetryError(Exception):
    """Raised to have the message delivered again after a delay."""


class HandBackError(Exception):
    """Raised to leave the message to later, or to another process: its run does not go on now, or this process lacks
    something for it."""


@dataclass
class Work:
    """A cause to react to; ``trigger`` is the message that brought it (the cause itself, a resume, a retry)."""

    handler: Reaction
    view: RunView
    cause: Recorded
    trigger: Recorded
    delivery: Delivery
    noted: bool = False
    """Its beginning is in the log, and its end is not."""

    @property
    def suspect(self) -> bool:
        """Whether several deliveries ended with their process, perhaps because of this very reaction."""
        return self.delivery.deliveries - 1 - self.view.failed[self.key] >= SUSPECT

    @property
    def key(self) -> tuple[str, str]:
        return self.cause.id, self.handler.name

    @property
    def should_run(self) -> bool:
        """Whether this reaction is to run now: not while its run is paused, failed or over, unless it is one for any
        time, as to that very event."""
        return self.view.status == "running" or self.cause.type in ANY_TIME

    @property
    def of_the_end(self) -> bool:
        """Whether it reacts to the very event that stopped the run."""
        return isinstance(self.cause.event, RunPaused | RunFailed | RunCancelled | RunFinished)

    @property
    def of_control(self) -> bool:
        """Whether it must not wait itself: what ends a run that waits too long, or reacts to an end."""
        return self.of_the_end or isinstance(self.cause.event, DependencyLost)
