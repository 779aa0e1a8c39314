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


def differ(rewards: Sequence[float]) -> bool:
    """Whether the rewards of a group carry a signal: their population deviation is ``EPSILON`` at least."""
    return statistics.pstdev(rewards) >= EPSILON


def with_contrast(
    groups: Sequence[Sequence[ScoredTrajectory]], skipped: Counter[str], most: int = 0
) -> list[Sequence[ScoredTrajectory]]:
    """Keep the groups whose rewards differ, and ``most`` of each (0: all): those furthest apart. Trajectories of the
    other groups are counted as ``no_contrast``, those beyond ``most`` as ``further``."""
    kept = []
    for members in groups:
        if not differ(rewards_of(members)):
            skipped["no_contrast"] += len(members)
            continue
        kept.append(furthest_apart(members, most) if 0 < most < len(members) else members)
        if further := len(members) - len(kept[-1]):
            skipped["further"] += further
    return kept


def furthest_apart(members: Sequence[ScoredTrajectory], count: int) -> list[ScoredTrajectory]:
    """The ``count`` members whose rewards have the greatest variance: some of the best and some of the worst (PODS,
    arXiv 2504.13818, 3.2); of equal rewards the first. They keep their order."""
    ranked = sorted(range(len(members)), key=lambda index: members[index].reward or 0.0)
    subsets = (ranked[: count - best] + ranked[len(ranked) - best :] for best in range(count + 1))
    chosen = max(subsets, key=lambda subset: statistics.pvariance(rewards_of([members[index] for index in subset])))
    return [members[index] for index in sorted(chosen)]


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
