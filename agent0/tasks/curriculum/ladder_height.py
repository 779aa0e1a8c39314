"""How high a student stands on a ladder, read from its accuracy by level. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent0.settings import RunConfig
from agent0.state.run_state import RunState
from agent0.tasks.families import CHECKED, COMPUTED, OPEN_FAMILY, requested_families

HALF, MOST = 0.5, 0.9
"""Shares of a level's tasks at which it counts as solved: T, and the stricter T90."""


@dataclass(frozen=True)
class Standing:
    """Where a student stands: accuracy by level (empty: it was not scored since), and the highest level of which the
    iteration's own attempts solved half (None: none, or nothing was asked)."""

    by_level: Mapping[str, float]
    frontier: int | None = None

    @property
    def height(self) -> int:
        """T: the highest level with at least half of its tasks solved; 0 where there is none."""
        return height(self.by_level)

    @property
    def added(self) -> float:
        """S: the accuracies of all levels added up."""
        return added(self.by_level)


def height(by_level: Mapping[str, float], share: float = HALF) -> int:
    """The highest level with at least ``share`` of its tasks solved; 0 where there is none."""
    return max((int(level) for level, accuracy in by_level.items() if accuracy >= share), default=0)


def added(by_level: Mapping[str, float]) -> float:
    """Add up the accuracies of all levels: S of a ladder, in levels."""
    return sum(by_level.values())


def on_ladder(config: RunConfig) -> bool:
    """Whether every family that a run asks for is a ladder."""
    plan = config.curriculum
    if plan.families and {COMPUTED, CHECKED}.issuperset(plan.families):  # no ladder is of these kinds
        return False
    entries = [entry for domain in plan.domains for entry in requested_families(domain, plan.families).values()]
    return bool(entries) and OPEN_FAMILY not in plan.families and all(entry.ladder for entry in entries)


def attempted_height(state: RunState, least: int = 1) -> int | None:
    """The highest level of which the attempts of the state's iteration solved half, 0 where there is none; None where
    no level had ``least`` tasks."""
    rates: dict[int, list[float]] = {}
    for task in state.tasks.values():
        if task.proposal and task.solve_rate is not None:
            rates.setdefault(task.proposal.level, []).append(task.solve_rate)
    enough = {level: level_rates for level, level_rates in rates.items() if len(level_rates) >= least}
    solved = [level for level, level_rates in enough.items() if sum(level_rates) >= HALF * len(level_rates)]
    return max(solved, default=0) if enough else None
