"""Which handler of a run fails again and again now, read from its log alone."""

from dataclasses import dataclass, field

from events.alarms import ReactionTried
from events.base import Recorded

SEVERAL = 2
"""Failed tries of a handler from which it is told of: a single one mostly passes."""
LONGEST = 160
"""Characters of what the handler failed of."""


@dataclass
class Retries:
    """The reactions whose last try failed: (handler, id of the cause) -> how often they failed, and of what."""

    _open: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)

    def feed(self, recorded: Recorded) -> None:
        """Take one event in: a try that failed, or an effect, with which a reaction is done."""
        match recorded.event:
            case ReactionTried(outcome="failed") as tried:
                key = tried.tried_handler, tried.cause_id
                why = " ".join(f"{tried.error}: {tried.message}".split()).removesuffix(":").rstrip(".")
                self._open[key] = (self._open.get(key, (0, ""))[0] + 1, why)
            case _:
                self._open.pop((recorded.handler, recorded.cause), None)

    def clear(self) -> None:
        """Forget them: what fails still is noted at its next try."""
        self._open.clear()

    def told(self) -> str:
        """The handler that failed most often, and why; empty where none failed several times."""
        counts: dict[str, int] = {}
        for (name, _), (count, _) in self._open.items():
            counts[name] = counts.get(name, 0) + count
        worst = max(counts, key=lambda name: counts[name], default="")
        if counts.get(worst, 0) < SEVERAL:
            return ""
        why = [why for (name, _), (_, why) in self._open.items() if name == worst][-1]
        why = why if len(why) <= LONGEST else f"{why[:LONGEST]}…"
        return f"{worst} failed {counts[worst]:,} times: {why}, tries again"
