"""Reading stored bodies: the newest are remembered, since several readers and handlers of a process meet each event.
Logs that were written before 0.1.0 are refused."""

from collections import OrderedDict

from agent0.events.base import EarlierVersionError, Recorded, decode
from agent0.events.runs import RunStarted

MARK = RunStarted.__name__.encode()
STARTS = f"a0.ev.*.-.-.{RunStarted.__name__}"
KEPT = 4 << 20
"""Bytes of bodies whose events are remembered; as objects they take several times as much."""


class Decoder:
    """Decodes the bodies of one log. Who asks for the same body again gets the same event, which nobody changes."""

    def __init__(self, kept: int = KEPT) -> None:
        self._most, self._size = kept, 0
        self._held: OrderedDict[int, tuple[bytes, Recorded]] = OrderedDict()

    def decode(self, seq: int, body: bytes, *, keep: bool = True) -> Recorded:
        """The event in ``body`` at ``seq``. ``keep``: remember it, as what was just stored.

        Raises:
            ValueError: there is none, see ``agent0.events.base.decode``.
        """
        cached = self._held.get(seq)
        if cached is not None and cached[0] == body:
            return cached[1]
        recorded = decode(body, seq)
        if keep:
            self._keep(seq, body, recorded)
        return recorded

    def _keep(self, seq: int, body: bytes, recorded: Recorded) -> None:
        before = self._held.pop(seq, None)
        self._held[seq] = body, recorded
        self._size += len(body) - (len(before[0]) if before else 0)
        while self._size > self._most:
            _, (oldest, _) = self._held.popitem(last=False)
            self._size -= len(oldest)


def is_earlier(body: bytes) -> bool:
    """Whether the stored ``body`` is a run's beginning that was written before 0.1.0."""
    if MARK not in body:
        return False
    try:
        decode(body)
    except EarlierVersionError:
        return True
    except ValueError:  # what is no event is told where it is read
        return False
    return False
