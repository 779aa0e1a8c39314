"""Rewards of proposals and attempts. One file per part (``components/``), one file per set (``sets/``).

A part is a pure function of features, bounded in [-1, 1], and leaves a receipt with its inputs. A set says which parts
count and how they are combined. A ``value`` of None means that a part could not be scored, which is not zero.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from agent0.errors import RewardError
from agent0.events.values import RewardPart, Role
from agent0.registry import Registry, declared_in
from agent0.settings import RewardConfig

Features = Mapping[str, Any]
Score = Callable[[Features], float | None]
Worth = Mapping[str, float]
"""Value times weight of each part that could be scored, by name."""
Combine = Callable[[Role, Worth], float]

AGENT0 = "agent0"
"""The set that parts belong to where they name no other."""

ROUNDING = 1e-9
"""How far sums of floats may carry a part beyond its bounds."""

GROUP_FEATURES = frozenset({"agrees", "majority"})
"""Features of a student's attempt that compare it with all attempts at its task."""


@dataclass(frozen=True)
class Reward:
    """A registered reward part: its role, default weight, the features it reads and its scoring function."""

    name: str
    role: Role
    weight: float
    reads: tuple[str, ...]
    score: Score
    set: str = AGENT0


@dataclass(frozen=True)
class RewardSet:
    """A registered reward set: how the values of its parts are combined into one reward.

    ``like`` names a set whose parts this one shares, except those it defines itself. ``label`` says by whose answer its
    authors reward a student, which simulations follow. ``domain``: where tasks come from a folder of that domain, this
    is the default set; simulations have no such tasks.
    """

    name: str
    combine: Combine
    like: str = ""
    label: Literal["verifier", "majority"] = "verifier"
    domain: str = ""

    @property
    def about(self) -> str:
        """The docstring of the combining function, on one line."""
        return " ".join((self.combine.__doc__ or "").split())


_rooms = f"{__name__}.components", f"{__name__}.sets"
_rewards = Registry[tuple[str, Role, str], Reward]("rewards", *_rooms)
_sets = Registry[str, RewardSet]("sets", *_rooms)


def reward(
    name: str, *, role: Role, weight: float = 0.0, reads: tuple[str, ...], set: str = AGENT0
) -> Callable[[Score], Score]:
    """Register ``score(features) -> value in [-1, 1] or None`` as one part of ``role``'s reward in ``set``. A part of
    weight 0 counts only where ``run.rewards.weights`` names it.

    Raises:
        TypeError: ``reads`` is text, whose letters would be taken for features.
    """
    if isinstance(reads, str):
        raise TypeError(f"reads of the reward {name} is text; write reads=({reads!r},)")
    return _rewards.adding((set, role, name), lambda score: Reward(name, role, weight, reads, score, set))


def reward_set(
    name: str, *, like: str = "", label: Literal["verifier", "majority"] = "verifier", domain: str = ""
) -> Callable[[Combine], Combine]:
    """Register ``combine(role, weighted values by part) -> total`` as the set ``name``; users read its docstring."""
    return _sets.adding(name, lambda combine: RewardSet(name, combine, like, label, domain))


def reward_sets() -> dict[str, RewardSet]:
    """Return every registered reward set by its name."""
    return _sets.all()


def set_of_domain(domain: str) -> str:
    """Name the default reward set of tasks that come from a folder of ``domain``."""
    return next((name for name, entry in reward_sets().items() if domain and entry.domain == domain), AGENT0)


def rewards(role: Role, set: str = AGENT0) -> dict[str, Reward]:
    """Return the parts of ``role``'s reward in ``set``, by name.

    Raises:
        KeyError: there is no such set.
    """
    chosen = reward_sets()[set]
    parts = rewards(role, chosen.like) if chosen.like else {}
    parts |= {name: entry for (whose, of, name), entry in _rewards.all().items() if (whose, of) == (set, role)}
    return dict(sorted(parts.items()))


def receipt(
    role: Role, facts: Features, weights: Mapping[str, float], set: str = AGENT0, of: str = ""
) -> tuple[tuple[RewardPart, ...], float]:
    """Score every part of ``role``'s reward: returns the parts with the inputs they read, and their total.

    ``weights`` overrides default weights by part name; parts of weight 0 are left out, parts without a value do not
    count. ``of`` is the task or attempt that errors name.

    Raises:
        RewardError: a part is no number from -1 to 1, or the total is not finite.
    """
    parts = []
    for entry in rewards(role, set).values():
        weight = weights.get(entry.name, entry.weight)
        if weight:
            inputs = {key: facts.get(key) for key in entry.reads}
            value = _scored(entry, inputs, of)
            parts.append(RewardPart(name=entry.name, inputs=inputs, value=value, weight=weight))
    whole = total(role, parts, set)
    if not math.isfinite(whole):
        raise _refused(f"set {set}", reward_sets()[set].combine, role, whole, of)
    return tuple(parts), whole


def _scored(entry: Reward, inputs: Features, of: str) -> float | None:
    try:
        value: Any = entry.score(inputs)
    except Exception as error:
        error.add_note(f"It was the {entry.role}'s reward {entry.name}.")
        raise
    if value is None or (isinstance(value, Real) and abs(float(value)) <= 1 + ROUNDING):
        return None if value is None else float(value)
    raise _refused(entry.name, entry.score, entry.role, value, of)


def _refused(name: str, function: Callable[..., Any], role: Role, value: object, of: str) -> RewardError:
    what = f"The {role}'s reward {name} ({declared_in(function)}) gave {value!r:.40} for {of or 'a task'}."
    why = "A part is a number from -1 to 1, or None where it cannot be known; their total is finite."
    return RewardError(what, why, "Correct its function.")


def total(role: Role, parts: Iterable[RewardPart], set: str = AGENT0) -> float:
    """Combine ``parts`` by the rule of ``set``; rounded to 12 digits."""
    worth = {part.name: part.value * part.weight for part in parts if part.value is not None}
    return round(reward_sets()[set].combine(role, worth), 12)


def features_read(role: Role, weights: Mapping[str, float], set: str = AGENT0) -> frozenset[str]:
    """Names of the features that parts with a weight read."""
    parts = rewards(role, set).values()
    return frozenset(key for entry in parts if weights.get(entry.name, entry.weight) for key in entry.reads)


def waits_for_group(rules: RewardConfig) -> bool:
    """Whether the attempts at a task are rewarded together, once all are resolved, because a part compares them."""
    return not GROUP_FEATURES.isdisjoint(features_read("student", rules.weights, rules.set))
