"""How long a run has worked: the time of its events, without that in which it was paused or no process carried it."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class RunClock:
    """Seconds of work, read from events alone, so that every fold of a log comes to the same.

    ``before_s`` is what was worked until the run was paused last; ``since`` is when it began or went on, None while it
    rests; ``last`` is its newest event. Both are seconds since 1970.
    """

    before_s: float = 0.0
    since: float | None = None
    last: float = 0.0

    @property
    def used_s(self) -> float:
        """Seconds worked up to the newest event."""
        return self.before_s if self.since is None else self.before_s + max(0.0, self.last - self.since)


RESTING = RunClock()
"""Before anything was worked."""


def ticked(clock: RunClock, time: float, *, working: bool, resumed: bool = False) -> RunClock:
    """``clock`` at an event of ``time``, after which the run is ``working`` or rests.

    One that is ``resumed`` had stopped at the event before: where a process was killed, nothing else says so.
    """
    if resumed:
        return RunClock(clock.used_s, time, time)
    current = replace(clock, last=time)
    if working == (clock.since is not None):
        return current
    return RunClock(current.used_s, time if working else None, time)
