"""Messages of the log that are no events: a person sets one aside, and a tombstone stands for it wherever it is read.

Only what cannot be read is ever replaced, so an event cannot be hidden by saying that it was set aside.
"""

from collections.abc import Callable, Mapping
from contextlib import aclosing

from agent0.errors import LogError
from agent0.events.alarms import LOG, MessageExcluded
from agent0.events.base import Recorded, decode, require_subject, subject_of
from agent0.infra.log.connection import Link
from agent0.infra.log.reader import Query, Stored, pull
from agent0.provenance.redaction import set_aside

SUBJECT = f"a0.ev.{LOG}.-.-.{MessageExcluded.__name__}"
Asides = Mapping[int, Recorded]
"""The ``MessageExcluded`` of each sequence that has one."""


async def read_asides(link: Link) -> Asides:
    """What was set aside so far; of several that name one message the first counts."""
    asides: dict[int, Recorded] = {}
    async with aclosing(pull(link, Query((SUBJECT,)))) as chunks:
        async for chunk in chunks:
            for stored in chunk:
                exclusion = decoded(stored, {})
                if isinstance(exclusion.event, MessageExcluded):
                    asides.setdefault(exclusion.event.at, exclusion)
    return asides


def visible_body(asides: Asides, seq: int, body: bytes, subject: str = "") -> bytes:
    """The ``body`` stored under ``subject``, or the tombstone of what was set aside."""
    exclusion = asides.get(seq)
    if exclusion is None or not unreadable(body, subject):
        return body
    return set_aside(seq, body, exclusion) or body


def unreadable(body: bytes, subject: str = "") -> str:
    """Why ``body`` is no event that this Agent0 reads under ``subject``, where that is known; empty where it is one."""
    try:
        require_subject(decode(body).subject, subject)
    except ValueError as error:
        return " ".join(str(error).split())[:300] or type(error).__name__
    return ""


def decoded(stored: Stored, asides: Asides) -> Recorded:
    """The event that is stored, or the tombstone that stands for it.

    Raises:
        LogError: it is none, and was not set aside.
    """
    return decoded_body(stored.message.data, stored.seq, asides)


Read = Callable[[int, bytes], Recorded]
"""From a sequence and a stored body to the event; ValueError where there is none."""


def decoded_body(body: bytes, seq: int, asides: Asides, read: Read | None = None, subject: str = "") -> Recorded:
    """Decode the event in ``body`` at ``seq``, with what was set aside left out; ``read`` decodes, where it is given.
    ``subject`` is the one that it was stored under, where that is at hand.

    Raises:
        LogError: as ``decoded``, or it belongs under another subject.
    """
    try:
        visible = visible_body(asides, seq, body, subject)
        recorded = read(seq, visible) if read else decode(visible, seq)
        if visible == body:
            require_subject(recorded.subject, subject)
        return recorded
    except ValueError as error:
        raise LogError(f"Event {seq} cannot be read.", str(error)[:500], advice(seq)) from error


def require_filed(seq: int, body: bytes, subject: str) -> None:
    """Raises LogError where ``body`` says that it belongs under another subject than the one that it was stored under;
    what is no event is refused by whoever decodes it."""
    try:
        own = subject_of(body)
    except ValueError:
        return
    try:
        require_subject(own, subject)
    except ValueError as error:
        raise LogError(f"Event {seq} cannot be read.", str(error)[:500], advice(seq)) from error


def advice(seq: int) -> str:
    """What to do about a message that cannot be read."""
    return (
        f"Use the Agent0 version that wrote it, or a newer one. Where no Agent0 wrote it: agent0 events set-aside {seq}"
    )
