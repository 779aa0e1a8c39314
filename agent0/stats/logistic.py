"""Ridge logistic regression over the log-odds of several confidence signals: many signals in, one probability out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from agent0.stats.calibrators import log_odds, sigmoid
from agent0.stats.logistic_fit import SMALLEST, fit_logistic

Signals = Mapping[str, float]
RIDGE = 1.0
"""Half of it times the squared length of the weights is added to the log loss; signals have unit deviation there."""


@dataclass(frozen=True)
class Fusion:
    """A fitted logistic regression over confidence signals.

    ``parameters``: the intercept, then a weight and a centre (in log-odds) for each of ``names``. An absent signal adds
    nothing.
    """

    names: tuple[str, ...]
    parameters: tuple[float, ...]
    fitted_on: int

    def apply(self, signals: Signals) -> float:
        """The probability of being right, given ``signals`` in [0, 1] by name."""
        total, *rest = self.parameters
        for name, weight, centre in zip(self.names, rest[::2], rest[1::2], strict=True):
            if name in signals:
                total += weight * (log_odds(signals[name]) - centre)
        return sigmoid(total)


def fuse(names: Sequence[str], items: Sequence[Signals], outcomes: Sequence[bool]) -> Fusion:
    """Fit weights of the signals ``names`` to ``outcomes`` by Newton's method; the intercept is not penalised.

    Raises:
        ValueError: fewer than two items, or all outcomes are equal.
    """
    if len(items) < 2 or len(set(outcomes)) < 2:
        raise ValueError("fusion needs items of both outcomes")
    scales = [_scale([log_odds(item[name]) for item in items if name in item]) for name in names]
    rows = [
        [1.0, *(_scaled(item.get(name), *scale) for name, scale in zip(names, scales, strict=True))] for item in items
    ]
    ridges = [SMALLEST, *(RIDGE for _ in names)]
    intercept, *weights = fit_logistic(rows, outcomes, ridges, [0.0] * len(ridges))
    parameters = [intercept]
    for weight, (centre, deviation) in zip(weights, scales, strict=True):
        parameters += [weight / deviation if deviation else 0.0, centre]
    return Fusion(tuple(names), tuple(parameters), len(items))


def _scale(values: Sequence[float]) -> tuple[float, float]:
    """Mean and deviation of log-odds; the latter 0 where they are all alike."""
    return (fmean(values), pstdev(values) if max(values) > min(values) else 0.0) if values else (0.0, 0.0)


def _scaled(value: float | None, centre: float, deviation: float) -> float:
    return (log_odds(value) - centre) / deviation if value is not None and deviation else 0.0
