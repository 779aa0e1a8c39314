"""Events about failures: failed reactions (the dead letters), unavailable dependencies, alarms, and the hash chain of
the log."""

from typing import Any, Literal

from pydantic import Field

from agent0.events.base import Event
from agent0.events.values import Artifact


class ReactionFailed(Event):
    """A reaction was given up: this is the dead letter. Retry or drop it with ``agent0 failures``."""

    failure: str
    """Id of the cause and handler together: a second failure of the same reaction has the same id."""
    cause_id: str
    cause_seq: int
    cause_type: str
    cause_task: str = "-"
    cause_attempt: str = "-"
    failed_handler: str
    error: str
    message: str
    traceback: str = ""
    deliveries: int
    waits: bool = False
    """A person decides, whatever ``run.on_failure`` says: nothing is known to be wrong with the work itself."""


class ReactionTried(Event):
    """A delivery of a reaction failed and will be retried, or one began after processes had ended during earlier ones.

    Failed tries count towards ``handlers.max_deliver``. Beginnings that nothing follows, since the process ended, count
    towards ``handlers.max_crashes``.
    """

    cause_id: str
    cause_seq: int
    cause_type: str
    tried_handler: str
    outcome: Literal["begun", "failed", "left"]
    """``left``: what began was given back, by a process that stopped or because a dependency is away."""
    noted: bool = False
    """The beginning of what failed or was left is an event, too."""
    error: str = ""
    message: str = ""


class ReactionRetried(Event):
    """A user asked for a failed reaction to be tried again."""

    failure: str
    cause_id: str
    cause_seq: int
    failed_handler: str


class ReactionDropped(Event):
    """A failed reaction is dropped for good; the run continues without its effects."""

    failure: str
    cause_id: str
    cause_type: str
    cause_task: str = "-"
    cause_attempt: str = "-"
    failed_handler: str
    reason: str


class DependencyLost(Event):
    """A handler waits for a dependency that is unavailable. No delivery is used up meanwhile."""

    dependency: str
    waiting: str
    """The handler that waits."""
    message: str = ""
    waited_s: float = 0
    """Seconds since it was lost; above 0 where it is told again, since ``run.give_up_after`` is over."""


class DependencyRestored(Event):
    """The dependency that a handler waited for is available again."""

    dependency: str
    waiting: str


class AlarmRaised(Event):
    """A condition began that a user should look at; ``alarm`` identifies it."""

    alarm: str
    severity: Literal["info", "warning", "critical"]
    message: str
    facts: dict[str, Any] = Field(default_factory=dict)


class AlarmResolved(Event):
    """The condition of a raised alarm no longer holds."""

    alarm: str
    message: str = ""


LOG = "log"
"""Stands where a run's id would: seals belong to the log as a whole."""


class LogSealed(Event):
    """A hash-chain checkpoint: a segment of the log was hashed.

    sha256 over the previous checkpoint's digest, then, from ``first`` to ``last``, each sequence with the sha256 of its
    stored body. So a checkpoint covers everything before it.
    """

    first: int
    last: int
    sha256: str
    previous: str = ""
    events: int = 0
    created: str = ""
    """When the stream was made, as the server says: another time is another stream."""


class LogContinued(Event):
    """The first event of a fresh stream that continues an archived one; sequence numbers go on unbroken."""

    before: int
    """Last sequence of the archive."""
    seal: str
    archive: Artifact
    """Manifest of the archive's segments."""


class EventRedacted(Event):
    """Replaces an event that was left out of an archive: place and digest stay, so that the hash chain
    still verifies."""

    sha256: str
    """Of the body that stood here."""
    was: str = ""
    """Its type."""
    why: Literal["forgotten", "elsewhere", "aside"] = "forgotten"
    """``elsewhere``: of a run that the archive is not about. ``aside``: it was no event, see ``MessageExcluded``."""


class MessageExcluded(Event):
    """A user excluded a message of the log that is no event: from then on a tombstone is read in its place."""

    at: int
    """Its sequence."""
    sha256: str
    """Of its body."""
    reason: str = ""
