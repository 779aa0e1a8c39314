"""What earlier receipts of a run leave for later ones: the distribution of totals, and which skills were seen.

Receipts of the present iteration count only once the next one begins, and sums are of whole numbers, so that the order
in which attempts finish does not matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent0.events.tasks import RewardAssigned
from agent0.state.replace import changed

UNIT = 10**9
"""Totals are summed in billionths."""


@dataclass(frozen=True)
class Moments:
    """Count, sum and sum of squares of reward totals, in billionths and squared billionths."""

    count: int = 0
    sum: int = 0
    squares: int = 0

    def plus(self, other: "Moments") -> "Moments":
        """Add two sets of moments."""
        return Moments(self.count + other.count, self.sum + other.sum, self.squares + other.squares)

    @property
    def mean(self) -> float:
        """The mean total; 0.0 without receipts."""
        return self.sum / self.count / UNIT if self.count else 0.0

    @property
    def deviation(self) -> float:
        """The population deviation of totals; 0.0 without receipts."""
        if not self.count:
            return 0.0
        variance = (self.squares * self.count - self.sum**2) / (self.count * UNIT) ** 2
        return float(max(0.0, variance) ** 0.5)


@dataclass(frozen=True)
class RewardHistory:
    """Reward totals by role and skill counts by signature, before and in ``iteration``.

    ``earned`` and ``skills`` are of earlier iterations and may be read; ``earning`` and ``fresh`` are of the present
    one.
    """

    iteration: int = 0
    earned: Mapping[str, Moments] = field(default_factory=dict)
    earning: Mapping[str, Moments] = field(default_factory=dict)
    skills: Mapping[str, int] = field(default_factory=dict)
    fresh: Mapping[str, int] = field(default_factory=dict)

    def at(self, iteration: int) -> "RewardHistory":
        """The history as ``iteration`` begins: receipts from before it count."""
        if iteration <= self.iteration:
            return self
        earned = {role: self.earned.get(role, Moments()).plus(moments) for role, moments in self.earning.items()}
        skills = {skill: self.skills.get(skill, 0) + n for skill, n in self.fresh.items()}
        return RewardHistory(iteration, {**self.earned, **earned}, {}, {**self.skills, **skills}, {})


def with_receipt(ledger: RewardHistory | None, event: RewardAssigned) -> RewardHistory | None:
    """Add a receipt to the history. Receipts without a raw total or a skill signature change nothing."""
    raw, skill = event.facts.get("raw_total"), event.facts.get("skill")
    if raw is None and not skill:
        return ledger
    history = (ledger or RewardHistory(event.iteration)).at(event.iteration)
    if raw is not None:
        units = round(float(raw) * UNIT)
        more = history.earning.get(event.role, Moments()).plus(Moments(1, units, units * units))
        history = changed(history, earning={**history.earning, event.role: more})
    if skill and event.role == "teacher":
        history = changed(history, fresh={**history.fresh, str(skill): history.fresh.get(str(skill), 0) + 1})
    return history
