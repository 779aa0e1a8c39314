"""What a deed is worth. One file a part; each is pure, bounded in [-1, 1] and leaves a receipt with its inputs.

``value`` None means that a part could not be scored, which is not the same as zero.
"""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from events.values import RewardPart, Role

Facts = Mapping[str, Any]
Score = Callable[[Facts], float | None]


@dataclass(frozen=True)
class Reward:
    """A registered part: its role, default weight, the facts it reads and how it scores them."""

    name: str
    role: Role
    weight: float
    reads: tuple[str, ...]
    score: Score


_rewards: dict[tuple[Role, str], Reward] = {}


def reward(name: str, *, role: Role, weight: float, reads: tuple[str, ...]) -> Callable[[Score], Score]:
    """Register ``score(facts) -> value in [-1, 1] or None`` as one part of ``role``'s reward."""

    def register(score: Score) -> Score:
        _rewards[role, name] = Reward(name, role, weight, reads, score)
        return score

    return register


def rewards(role: Role) -> dict[str, Reward]:
    """The parts of ``role``'s reward by name."""
    _import_all()
    return {name: entry for (whose, name), entry in sorted(_rewards.items()) if whose == role}


def receipt(role: Role, facts: Facts, weights: Mapping[str, float]) -> tuple[tuple[RewardPart, ...], float]:
    """Every part with the inputs it read, and the total: the weighted sum of the parts that could be scored.

    ``weights`` overrides default weights by part name; parts of weight 0 are left out.
    """
    parts = []
    for entry in rewards(role).values():
        weight = weights.get(entry.name, entry.weight)
        if weight:
            inputs = {key: facts.get(key) for key in entry.reads}
            parts.append(RewardPart(name=entry.name, inputs=inputs, value=entry.score(inputs), weight=weight))
    total = sum(part.value * part.weight for part in parts if part.value is not None)
    return tuple(parts), round(total, 12)


@functools.cache
def _import_all() -> None:
    for found in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{found}")
