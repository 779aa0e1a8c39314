"""What a reward is worth beside the others of its group. Pure numbers; groups in which all rewards are equal say
nothing, and are counted."""

import statistics
from collections import Counter
from collections.abc import Sequence

from agent0.training.scored_trajectory import Deed
from events.values import Trajectory

EPSILON = 1e-4


def rewards_of(members: Sequence[Deed]) -> list[float]:
    """The rewards; unscored deeds never come this far."""
    return [deed.reward or 0.0 for deed in members]


def with_contrast(groups: Sequence[Sequence[Deed]], skipped: Counter[str]) -> list[Sequence[Deed]]:
    """The groups whose rewards differ; the deeds of the others are counted."""
    kept = []
    for members in groups:
        if statistics.pstdev(rewards_of(members)) < EPSILON:
            skipped["no_contrast"] += len(members)
        else:
            kept.append(members)
    return kept


def relative(members: Sequence[Deed], *, divided: bool) -> list[float]:
    """(reward - mean) / (population deviation + 1e-4) inside a group (GRPO, arXiv 2402.03300, 4.1.2); not ``divided``:
    the difference alone (arXiv 2503.20783)."""
    values = rewards_of(members)
    centre = statistics.fmean(values)
    by = statistics.pstdev(values) + EPSILON if divided else 1.0
    return [(value - centre) / by for value in values]


def trajectory_of(deed: Deed) -> Trajectory:
    """What the policy wrote."""
    return deed.trajectory or Trajectory()
