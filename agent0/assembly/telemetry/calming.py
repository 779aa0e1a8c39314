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
    ends: tuple[Recorded, ...] = ()

    def take(self, events: Iterable[Recorded], moment: datetime) -> "tuple[list[Recorded], Calm]":
        """Take in ``events``: what is to be sent as of ``moment``, of what waited before too, and what waits since."""
        ends, out = list(self.ends), list[Recorded]()
        for stored in events:
            out += _over(ends, stored.time - self.calm)
            match stored.event:
                case AlarmResolved() if self.calm:
                    ends.append(stored)
                case AlarmRaised() if again := [end for end in ends if _same(end, stored)]:
                    ends = [end for end in ends if end not in again]
                case _:
                    out.append(stored)
        out += _over(ends, moment - self.calm)
        return out, Calm(self.calm, tuple(ends))


def _over(ends: list[Recorded], until: datetime) -> Iterator[Recorded]:
    """Take out what has been held since ``until`` or longer."""
    for end in [end for end in ends if end.time <= until]:
        ends.remove(end)
        yield end


def _same(end: Recorded, begin: Recorded) -> bool:
    ended, begun = end.event, begin.event
    assert isinstance(ended, AlarmResolved)  # noqa: S101 - nothing else is held
    assert isinstance(begun, AlarmRaised)  # noqa: S101 - matched before
    return (end.run, ended.alarm) == (begin.run, begun.alarm)
