"""How much one key may start or change in a minute, and how many wrong keys may be tried."""

import hashlib
from collections.abc import Callable
from time import monotonic

from agent0.api.problems import RateError

MINUTE_S = 60.0
CHANGES = "Too many requests that start or change something."
MOST = 1000
"""Names that are remembered."""


class Rates:
    """A bucket for each name that holds ``a_minute`` requests and fills up within a minute; 0: no limit. ``what`` is
    the title of a refusal."""

    def __init__(self, a_minute: int, clock: Callable[[], float] = monotonic, what: str = CHANGES) -> None:
        self._most, self._clock, self._what = a_minute, clock, what
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Count one request of ``name``.

        Raises:
            RateError: it has none left.
        """
        if not self._most:
            return
        time_s = self._clock()
        left, filled_s = self._buckets.pop(name, (float(self._most), time_s))
        left = min(float(self._most), left + (time_s - filled_s) * self._most / MINUTE_S)
        self._buckets[name] = (max(0.0, left - 1) if left >= 1 else left, time_s)
        while len(self._buckets) > MOST:
            del self._buckets[next(iter(self._buckets))]
        if left < 1:
            why = f"{self._most} a minute are (api.changes_per_minute)."
            raise RateError(self._what, why, (1 - left) * MINUTE_S / self._most)


class WrongKeys:
    """Limits tries of unknown keys for each client address and for each key. A valid key always passes: keys are too
    long to be guessed."""

    def __init__(self, a_minute: int, clock: Callable[[], float] = monotonic) -> None:
        self._rates = Rates(a_minute, clock, "Too many keys that are not known.")

    def take(self, text: str, address: str) -> None:
        """Count one try of ``text`` from ``address``.

        Raises:
            RateError: one of the two was tried too often.
        """
        self._rates.take(f"address {address}")
        self._rates.take(f"key {hashlib.sha256(text.encode()).hexdigest()}")
