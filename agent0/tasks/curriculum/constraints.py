"""Constraints that keep a curriculum diverse: minimum entropy, maximum share of a family, maximum age of a slot.

Each is off by default and acts on the probabilities of one domain's slots, so none changes how rewards are assigned.
"""

import math
from collections.abc import Mapping, Sequence

Slot = tuple[str, str, int]


def entropy(chances: Sequence[float]) -> float:
    """The entropy of a distribution over slots, as a share of the largest possible; 1 for a single slot."""
    total = sum(chances)
    if len(chances) < 2 or total <= 0:
        return 1.0
    shares = [c / total for c in chances]
    return -sum(share * math.log(share) for share in shares if share > 0) / math.log(len(chances))


def broadened(weights: Sequence[float], floor: float) -> list[float]:
    """Turn ``weights`` into probabilities, mixed with the uniform distribution just as far as their entropy needs to
    reach ``floor`` (a share of the largest possible)."""
    total, n = sum(weights), len(weights)
    chances = [w / total for w in weights] if total > 0 else [1 / n] * n
    if entropy(chances) >= floor:
        return chances
    low, high = 0.0, 1.0
    for _ in range(40):  # the entropy of a mixture with the uniform rises with its share
        middle = (low + high) / 2
        mixed = [(1 - middle) * c + middle / n for c in chances]
        low, high = (low, middle) if entropy(mixed) >= floor else (middle, high)
    return [(1 - high) * c + high / n for c in chances]


def open_slots(arms: Sequence[Slot], chosen: Sequence[Slot], share: float, tasks: int) -> list[Slot]:
    """Slots of families that have not reached ``share`` of the iteration's ``tasks`` yet; all where none is left."""
    most = max(1, math.floor(share * tasks))
    counts: dict[str, int] = {}
    for _, family, _ in chosen:
        counts[family] = counts.get(family, 0) + 1
    left = [arm for arm in arms if counts.get(arm[1], 0) < most]
    return left or list(arms)


def stale(arms: Sequence[Slot], last: Mapping[Slot, int], iteration: int, patience: int) -> list[Slot]:
    """Slots that were not requested in the last ``patience`` iterations, oldest first.

    ``last`` has the iteration in which a slot was last requested; -1 or absent: never.
    """
    ages = [(last.get(arm, -1), index) for index, arm in enumerate(arms)]
    return [arms[index] for requested, index in sorted(ages) if iteration - requested > patience]
