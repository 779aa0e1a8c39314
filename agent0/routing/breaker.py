"""A circuit breaker: a model that failed several times in a row is left alone for a while, then tried by one call.

Pure: whoever uses it says what time it is, in seconds on a clock that never goes back.
"""

from dataclasses import dataclass

LONGEST_S = 600.0


@dataclass
class Breaker:
    """Opens after ``failures`` failed calls in a row, for ``first_s`` seconds, and twice as long after each failed
    trial."""

    failures: int
    first_s: float
    failed: int = 0
    until: float = 0.0

    def wait_s(self, time_s: float) -> float:
        """Seconds until a call may go through, 0 where one may now; the one that is the trial keeps others off."""
        if self.failed < self.failures:
            return 0.0
        if time_s < self.until:
            return self.until - time_s
        self.until = time_s + self._open_s()
        return 0.0

    def succeed(self) -> bool:
        """Note a call that was answered; whether calls had been kept off until now."""
        failed, self.failed = self.failed, 0
        return failed >= self.failures

    def fail(self, time_s: float) -> bool:
        """Note a call that failed; whether calls are kept off from now on, and had not been."""
        self.failed += 1
        if self.failed >= self.failures:
            self.until = time_s + self._open_s()
        return self.failed == self.failures

    def _open_s(self) -> float:
        doublings = min(self.failed - self.failures, 32)
        return float(min(LONGEST_S, self.first_s * 2**doublings))
