"""Ridge logistic regression over the log-odds of several confidence signals: many signals in, one probability out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from statistics import fmean, pstdev

from agent0.stats.calibrators import log_odds, sigmoid, softplus

Signals = Mapping[str, float]
RIDGE = 1.0
"""Half of it times the squared length of the weights is added to the log loss; signals have unit deviation there."""

STEPS = 50
_SMALLEST = 1e-9


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
    intercept, *weights = _newton(rows, outcomes)
    parameters = [intercept]
    for weight, (centre, deviation) in zip(weights, scales, strict=True):
        parameters += [weight / deviation if deviation else 0.0, centre]
    return Fusion(tuple(names), tuple(parameters), len(items))


def _scale(values: Sequence[float]) -> tuple[float, float]:
    """Mean and deviation of log-odds; the latter 0 where they are all alike."""
    return (fmean(values), pstdev(values) if max(values) > min(values) else 0.0) if values else (0.0, 0.0)


def _scaled(value: float | None, centre: float, deviation: float) -> float:
    return (log_odds(value) - centre) / deviation if value is not None and deviation else 0.0


def _newton(rows: Sequence[Sequence[float]], outcomes: Sequence[bool]) -> list[float]:
    """Coefficients of the columns of ``rows``, with halved steps; the first is not shrunk."""
    ridges = [_SMALLEST, *([RIDGE] * (len(rows[0]) - 1))]

    def loss(line: Sequence[float]) -> float:
        fit = sum(softplus(-z if outcome else z) for z, outcome in zip(_scores(line, rows), outcomes, strict=True))
        return fit + sum(ridge * w * w for ridge, w in zip(ridges, line, strict=True)) / 2

    line = [0.0] * len(ridges)
    for _ in range(STEPS):
        step, length, before = _step(line, rows, outcomes, ridges), 1.0, loss(line)
        while length > _SMALLEST and loss(_moved(line, step, length)) > before:
            length /= 2
        line = _moved(line, step, length)
        if before - loss(line) < _SMALLEST:
            break
    return line


def _scores(line: Sequence[float], rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(map(mul, line, row)) for row in rows]


def _moved(line: Sequence[float], step: Sequence[float], length: float) -> list[float]:
    return [at - length * part for at, part in zip(line, step, strict=True)]


def _step(
    line: Sequence[float], rows: Sequence[Sequence[float]], outcomes: Sequence[bool], ridges: Sequence[float]
) -> list[float]:
    """Newton's: the slope, divided by the curvature."""
    shares = [sigmoid(z) for z in _scores(line, rows)]
    slope = [ridge * w for ridge, w in zip(ridges, line, strict=True)]
    curve = [[ridge if n == m else 0.0 for m in range(len(line))] for n, ridge in enumerate(ridges)]
    for row, share, outcome in zip(rows, shares, outcomes, strict=True):
        weight = share * (1 - share)
        for n, x in enumerate(row):
            slope[n] += (share - outcome) * x
            for m in range(n + 1):
                curve[n][m] += weight * x * row[m]
    return _solved(curve, slope)


def _solved(lower: list[list[float]], right: Sequence[float]) -> list[float]:
    """x with A x = ``right``, of a positive definite A given by its ``lower`` triangle (Cholesky)."""
    size = len(right)
    root = [[0.0] * size for _ in range(size)]
    for n in range(size):
        for m in range(n + 1):
            rest = lower[n][m] - sum(map(mul, root[n][:m], root[m][:m]))
            root[n][m] = max(rest, 1e-18) ** 0.5 if n == m else rest / root[m][m]
    forward: list[float] = []
    for n in range(size):
        forward.append((right[n] - sum(map(mul, root[n][:n], forward))) / root[n][n])
    found = [0.0] * size
    for n in reversed(range(size)):
        after = sum(root[m][n] * found[m] for m in range(n + 1, size))
        found[n] = (forward[n] - after) / root[n][n]
    return found
