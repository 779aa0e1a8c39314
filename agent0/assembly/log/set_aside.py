"""Part of the rim: goes on without a message of the log that is no event."""

from typing import TYPE_CHECKING, Any

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.stamping import recorded
from agent0.errors import OperationError
from agent0.events.alarms import LOG, MessageExcluded
from agent0.events.base import sha256
from agent0.infra.log.set_aside import unreadable
from agent0.settings import Settings

if TYPE_CHECKING:
    pass


async def set_aside(settings: Settings, seq: int, reason: str) -> dict[str, Any]:
    """Go on without the message at ``seq``, which is no event; what was noted of it.

    Raises:
        NotFoundError: there is none. OperationError: it can be read, or was set aside before.
    """
    async with open_log(settings) as log:
        body = await log.body(seq)
        if not (why := unreadable(body)):
            fix = "To leave an event out for good: agent0 events export PATH --redact TASK"
            raise OperationError(f"Event {seq} is not set aside.", "It can be read, or was set aside before.", fix)
        event = MessageExcluded(at=seq, sha256=sha256(body), reason=reason)
        await log.append([recorded(LOG, event)])
    return {"at": seq, "sha256": event.sha256, "bytes": len(body), "why": why, "reason": reason}
