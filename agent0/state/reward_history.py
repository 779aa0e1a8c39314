"""What earlier receipts of a run leave for later ones: how pay was spread, and which skills were seen.

Receipts of the present iteration count only once the next one begins, and sums are of whole numbers, so that who was
finished first does not matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent0.state.replace import changed
from events.tasks import RewardAssigned

UNIT = 10**9
"""Totals are summed in billionths."""


@dataclass(frozen=True)
class Moments:
    """Of totals: how many, their sum and the sum of their squares, in units and squared units."""

    count: int = 0
    sum: int = 0
    squares: int = 0

    def plus(self, other: "Moments") -> "Moments":
        """Both together."""
        return Moments(self.count + other.count, self.sum + other.sum, self.squares + other.squares)

    @property
    def mean(self) -> float:
        """0.0 of nothing."""
        return self.sum / self.count / UNIT if self.count else 0.0

    @property
    def deviation(self) -> float:
        """Of the population; 0.0 of nothing."""
        if not self.count:
            return 0.0
        variance = (self.squares * self.count - self.sum**2) / (self.count * UNIT) ** 2
        return float(max(0.0, variance) ** 0.5)


@dataclass(frozen=True)
class Ledger:
    """By role, what was earned (raw totals) before and in ``iteration``; by signature, how often a skill was seen."""

    iteration: int = 0
    earned: Mapping[str, Moments] = field(default_factory=dict)
    earning: Mapping[str, Moments] = field(default_factory=dict)
    skills: Mapping[str, int] = field(default_factory=dict)
    fresh: Mapping[str, int] = field(default_factory=dict)

    def at(self, iteration: int) -> "Ledger":
        """As ``iteration`` begins: what came in before it counts."""
        if iteration <= self.iteration:
            return self
        earned = {role: self.earned.get(role, Moments()).plus(now) for role, now in self.earning.items()}
        skills = {skill: self.skills.get(skill, 0) + n for skill, n in self.fresh.items()}
        return Ledger(iteration, {**self.earned, **earned}, {}, {**self.skills, **skills}, {})


def entered(ledger: Ledger | None, event: RewardAssigned) -> Ledger | None:
    """The ledger after ``event``. Only receipts that tell a raw total or a skill are entered: others need none."""
    raw, skill = event.facts.get("raw_total"), event.facts.get("skill")
    if raw is None and not skill:
        return ledger
    held = (ledger or Ledger(event.iteration)).at(event.iteration)
    if raw is not None:
        units = round(float(raw) * UNIT)
        more = held.earning.get(event.role, Moments()).plus(Moments(1, units, units * units))
        held = changed(held, earning={**held.earning, event.role: more})
    if skill and event.role == "teacher":
        held = changed(held, fresh={**held.fresh, str(skill): held.fresh.get(str(skill), 0) + 1})
    return held
