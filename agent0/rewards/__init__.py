"""What a deed is worth. One file a part, one file a set (``sets/``); each part is pure, bounded in [-1, 1] and leaves a
receipt with its inputs. A set says which parts count and how they are put together.

``value`` None means that a part could not be scored, which is not the same as zero.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent0.registry import Registry
from agent0.settings import RewardConfig
from events.values import RewardPart, Role

Facts = Mapping[str, Any]
Score = Callable[[Facts], float | None]
Worth = Mapping[str, float]
"""By part that could be scored: its value times its weight."""
Combine = Callable[[Role, Worth], float]

AGENT0 = "agent0"
"""The set that parts belong to where they name no other."""

OF_GROUP = frozenset({"agrees", "majority"})
"""Facts about a student's attempt that only all attempts at its task tell."""


@dataclass(frozen=True)
class Reward:
    """A registered part: its role, default weight, the facts it reads and how it scores them."""

    name: str
    role: Role
    weight: float
    reads: tuple[str, ...]
    score: Score
    set: str = AGENT0


@dataclass(frozen=True)
class RewardSet:
    """How parts become a reward. ``like`` is a set whose parts this one has, too, but for those it has itself.
    ``label``: whose word its authors pay a student by, which is what a simulation plays.
    """

    name: str
    combine: Combine
    like: str = ""
    label: Literal["verifier", "majority"] = "verifier"

    @property
    def about(self) -> str:
        """What it says of itself."""
        return " ".join((self.combine.__doc__ or "").split())


_rooms = f"{__name__}.components", f"{__name__}.sets"
_rewards = Registry[tuple[str, Role, str], Reward]("rewards", *_rooms)
_sets = Registry[str, RewardSet]("sets", *_rooms)


def reward(
    name: str, *, role: Role, weight: float, reads: tuple[str, ...], set: str = AGENT0
) -> Callable[[Score], Score]:
    """Register ``score(facts) -> value in [-1, 1] or None`` as one part of ``role``'s reward in ``set``."""
    return _rewards.adding((set, role, name), lambda score: Reward(name, role, weight, reads, score, set))


def reward_set(
    name: str, *, like: str = "", label: Literal["verifier", "majority"] = "verifier"
) -> Callable[[Combine], Combine]:
    """Register ``combine(role, worth by part) -> total`` as the set ``name``; its docstring is what people read."""
    return _sets.adding(name, lambda combine: RewardSet(name, combine, like, label))


def reward_sets() -> dict[str, RewardSet]:
    """Every set by name. Editions of one that only old runs use are named ``set/edition``."""
    return _sets.all()


def rewards(role: Role, set: str = AGENT0) -> dict[str, Reward]:
    """The parts of ``role``'s reward by name.

    Raises:
        KeyError: there is no such set.
    """
    chosen = reward_sets()[set]
    found = rewards(role, chosen.like) if chosen.like else {}
    found |= {name: entry for (whose, of, name), entry in _rewards.all().items() if (whose, of) == (set, role)}
    return dict(sorted(found.items()))


def receipt(
    role: Role, facts: Facts, weights: Mapping[str, float], set: str = AGENT0
) -> tuple[tuple[RewardPart, ...], float]:
    """Every part with the inputs it read, and the total of those that could be scored.

    ``weights`` overrides default weights by part name; parts of weight 0 are left out.
    """
    parts = []
    for entry in rewards(role, set).values():
        weight = weights.get(entry.name, entry.weight)
        if weight:
            inputs = {key: facts.get(key) for key in entry.reads}
            parts.append(RewardPart(name=entry.name, inputs=inputs, value=_scored(entry, inputs), weight=weight))
    return tuple(parts), total(role, parts, set)


def _scored(entry: Reward, inputs: Facts) -> float | None:
    try:
        return entry.score(inputs)
    except Exception as error:
        error.add_note(f"It was the {entry.role}'s reward {entry.name}.")
        raise


def total(role: Role, parts: Iterable[RewardPart], set: str = AGENT0) -> float:
    """What ``parts`` come to together, rounded to 12 digits."""
    worth = {part.name: part.value * part.weight for part in parts if part.value is not None}
    return round(reward_sets()[set].combine(role, worth), 12)


def read_by(role: Role, weights: Mapping[str, float], set: str = AGENT0) -> frozenset[str]:
    """Names of the facts that parts with a weight read."""
    known = rewards(role, set).values()
    return frozenset(key for entry in known if weights.get(entry.name, entry.weight) for key in entry.reads)


def registered(rules: RewardConfig) -> str:
    """The name that a set is registered under: an earlier edition has one of its own where it differs, which stands for
    those before it, too."""
    newest = RewardConfig.model_fields["edition"].default
    names = (f"{rules.set}/{edition}" for edition in range(rules.edition, newest))
    return next((name for name in names if name in reward_sets()), rules.set)


def rules_of(name: str) -> RewardConfig:
    """Those under which the set that is registered as ``name`` pays."""
    chosen, _, edition = name.partition("/")
    return RewardConfig.model_validate({"set": chosen, **({"edition": int(edition)} if edition else {})})


def waits(rules: RewardConfig) -> bool:
    """Whether the attempts at a task are paid together, once all are settled: a part reads what only these tell."""
    return not OF_GROUP.isdisjoint(read_by("student", rules.weights, registered(rules)))
