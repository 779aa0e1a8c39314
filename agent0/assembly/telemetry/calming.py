"""Part of the rim: which alarms are sent to other systems. One that is raised again soon after it was resolved was
never over, so that an alarm that flaps at its threshold is one message when it begins and one when it ends."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent0.events.alarms import AlarmRaised, AlarmResolved
from agent0.events.base import Recorded


@dataclass(frozen=True)
class Calm:
    """Ends of alarms that are not sent yet, oldest first: each may be raised again until ``calm`` has passed."""

    calm: timedelta
    held: tuple[Recorded, ...] = ()

    def take(self, events: Iterable[Recorded], now: datetime) -> "tuple[list[Recorded], Calm]":
        """Take in ``events``: what is to be sent as of ``now``, of what was held before too, and what is held since."""
        held, out = list(self.held), list[Recorded]()
        for one in events:
            out += _over(held, one.time - self.calm)
            match one.event:
                case AlarmResolved() if self.calm:
                    held.append(one)
                case AlarmRaised() if again := [end for end in held if _same(end, one)]:
                    held = [end for end in held if end not in again]
                case _:
                    out.append(one)
        out += _over(held, now - self.calm)
        return out, Calm(self.calm, tuple(held))


def _over(held: list[Recorded], until: datetime) -> Iterator[Recorded]:
    """Take out what has been held since ``until`` or longer."""
    for end in [one for one in held if one.time <= until]:
        held.remove(end)
        yield end


def _same(end: Recorded, begin: Recorded) -> bool:
    ended, begun = end.event, begin.event
    assert isinstance(ended, AlarmResolved)  # noqa: S101 - nothing else is held
    assert isinstance(begun, AlarmRaised)  # noqa: S101 - matched before
    return (end.run, ended.alarm) == (begin.run, begun.alarm)
