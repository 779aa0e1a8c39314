"""When a change of prompts, rewards, settings, a plugin or a model is blocked as a regression: one exact paired test,
one-sided, with error rates that are known beforehand. The promotion gate is another rule, for checkpoints of a run.

A change that costs nothing is blocked in at most ``false_blocks`` of all cases, however many items it is tried on and
however many of them it changes: given how many outcomes changed, each is as likely gained as lost. How often a loss is
caught depends on the number of items and on the share of them that changes (the discordance).
"""

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

from agent0.stats.paired_tests import Difference, agreeing, binomial_at_most, mcnemar

TASKS = "tasks"
"""The unit of a comparison of rewards."""
MOST_ITEMS = 100_000
"""Items beyond which a rule is refused: its loss is too small to be shown."""
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class RegressionRule:
    """Block a change whose loss is proven at the one-sided level ``false_blocks``. A loss of ``loss`` (a share) is to
    be caught with ``power`` where ``discordance``, the share of items whose outcome changes, is as planned."""

    loss: float = 0.05
    power: float = 0.9
    false_blocks: float = 0.05
    discordance: float = 0.2

    def __post_init__(self) -> None:
        """Raises ValueError: shares outside of (0, 1), or a loss of more items than change."""
        if not all(0 < share < 1 for share in (self.loss, self.power, self.false_blocks, self.discordance)):
            raise ValueError("loss, power, false blocks and discordance lie between 0 and 1")
        if self.loss > self.discordance:
            raise ValueError(f"a loss of {self.loss:.3g} needs as many items that change, not {self.discordance:.3g}")

    def items(self, discordance: float | None = None) -> int:
        """Count the pairs needed to catch ``loss`` with ``power`` at ``discordance`` (None: as planned); ``MOST_ITEMS``
        where they are more."""
        return _items(self, max(self.loss, self.discordance if discordance is None else discordance))

    def catches(self, items: int, discordance: float | None = None) -> float:
        """Compute the exact chance that a loss of ``loss`` on ``items`` pairs is blocked."""
        share = max(self.loss, self.discordance if discordance is None else discordance)
        return blocking_chance(items, min(share, 1.0), self.loss, self.false_blocks)

    def interval(self, difference: Difference) -> Difference:
        """Return ``difference`` with the two-sided interval of this test, of the level ``2 * false_blocks``: it lies
        below 0 where, and only where, the change is blocked (unless items changed by parts of a point)."""
        return agreeing(difference, difference.p, 2 * self.false_blocks)

    def blocks(self, difference: Difference) -> bool:
        """Whether this change is blocked: test and interval agree on a loss. ``difference`` comes from ``compare``."""
        return self.one_sided(difference) < self.false_blocks and self.interval(difference).upper95 < 0

    @staticmethod
    def one_sided(difference: Difference) -> float:
        """The exact p of a loss: half of McNemar's where more items were lost than gained, else at least a half."""
        half = difference.p / 2
        return half if difference.lost > difference.gained else 1 - half


@dataclass(frozen=True)
class Regression:
    """What a change came to against its base. ``base`` and ``change`` are mean scores of the same ``difference.items``;
    ``lost`` names items that were right and are not any more."""

    rule: RegressionRule
    base: float
    change: float
    difference: Difference
    lost: tuple[str, ...]
    unit: str = "items"

    @property
    def blocked(self) -> bool:
        """Whether the rule blocks the change."""
        return self.rule.blocks(self.difference)

    @property
    def discordance(self) -> float:
        """The share of items whose outcome changed."""
        return (self.difference.gained + self.difference.lost) / self.difference.items

    @property
    def power(self) -> float:
        """The chance that the rule's loss is caught on these items, with the larger of the discordance planned and
        observed."""
        return self.rule.catches(self.difference.items, max(self.discordance, self.rule.discordance))

    @property
    def items_needed(self) -> int:
        """The items that would give the rule's power at that discordance."""
        return self.rule.items(max(self.discordance, self.rule.discordance))


def blocking_chance(items: int, discordance: float, loss: float, level: float) -> float:
    """Compute exactly how likely the one-sided test at ``level`` blocks a change which loses ``loss`` of ``items``
    pairs, each of which changes with the chance ``discordance``."""
    gain = (discordance - loss) / (2 * discordance)
    spread = 8 * math.sqrt(items * discordance * (1 - discordance)) + 1
    first, last = max(0, int(items * discordance - spread)), min(items, int(items * discordance + spread))
    total = 0.0
    for changed in range(first, last + 1):
        weight = _binomial(changed, items, discordance)
        gains = _most_gains(changed, level)
        if weight > _NEGLIGIBLE and gains >= 0:
            total += weight * binomial_at_most(gains, changed, gain)
    return min(1.0, total)


@cache
def _most_gains(changed: int, level: float) -> int:
    """The most gains among ``changed`` outcomes at which the test still blocks; -1: it never does."""
    low, high = -1, (changed - 1) // 2
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if mcnemar(middle, changed - middle) < 2 * level else (low, middle - 1)
    return low


def _binomial(k: int, n: int, share: float) -> float:
    if share >= 1:
        return float(k == n)
    logs = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(logs + k * math.log(share) + (n - k) * math.log1p(-share))


@cache
def _items(rule: RegressionRule, discordance: float) -> int:
    """From the normal approximation (Connor 1987) upwards, until the exact test has the power."""
    share, normal = min(discordance, 1.0), NormalDist()
    a, b = normal.inv_cdf(1 - rule.false_blocks), normal.inv_cdf(rule.power)
    about = (a * math.sqrt(share) + b * math.sqrt(max(share - rule.loss**2, 0.0))) / rule.loss
    items = max(1, math.ceil(about * about))
    while items < MOST_ITEMS and blocking_chance(items, share, rule.loss, rule.false_blocks) < rule.power:
        items += max(1, items // 500)
    return min(items, MOST_ITEMS)
