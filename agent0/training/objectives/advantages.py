"""Advantages: rewards relative to the others of a group. Groups of equal rewards carry no signal and are counted."""

import statistics
from collections import Counter
from collections.abc import Sequence

from agent0.events.values import Trajectory
from agent0.training.scored_trajectory import ScoredTrajectory

EPSILON = 1e-4


def rewards_of(members: Sequence[ScoredTrajectory]) -> list[float]:
    """The rewards of scored trajectories, as floats; unscored ones are filtered out before."""
    return [scored.reward or 0.0 for scored in members]


def with_contrast(
    groups: Sequence[Sequence[ScoredTrajectory]], skipped: Counter[str]
) -> list[Sequence[ScoredTrajectory]]:
    """Keep the groups whose rewards differ; trajectories of the others are counted as ``no_contrast``."""
    kept = []
    for members in groups:
        if statistics.pstdev(rewards_of(members)) < EPSILON:
            skipped["no_contrast"] += len(members)
        else:
            kept.append(members)
    return kept


def group_advantages(members: Sequence[ScoredTrajectory], *, divided: bool) -> list[float]:
    """Advantages inside a group: (reward - mean) / (population deviation + 1e-4) (GRPO, arXiv 2402.03300, 4.1.2).

    Not ``divided``: the difference alone (arXiv 2503.20783).
    """
    values = rewards_of(members)
    centre = statistics.fmean(values)
    by = statistics.pstdev(values) + EPSILON if divided else 1.0
    return [(value - centre) / by for value in values]


def trajectory_of(scored: ScoredTrajectory) -> Trajectory:
    """The trajectory itself; an empty one where none was recorded."""
    return scored.trajectory or Trajectory()
