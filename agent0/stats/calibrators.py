"""Calibration of confidences: reliability bins, ECE with an interval, proper scores, and three calibrators.

A calibrator must be fitted on other items than it is scored on; the caller sees to that.
"""

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

import numpy as np
import numpy.typing as npt

from agent0.stats.logistic_fit import fit_logistic

BINS = 10
_NEAREST = 1e-6
_CELLS = 4_000_000
"""Draws times items that a bootstrap holds in memory at once."""
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Method = Literal["temperature", "platt", "isotonic"]


@dataclass(frozen=True)
class Bin:
    """One reliability bin: items whose confidence lies in (low, high]. Both means are 0.0 for an empty bin."""

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Calibrator:
    """A fitted monotone map from confidence to probability.

    ``parameters`` by method: ``temperature`` (T,); ``platt`` (slope, intercept) on log-odds; ``isotonic`` the
    thresholds followed by as many values.
    """

    method: Method
    parameters: tuple[float, ...]
    fitted_on: int

    def apply(self, confidence: float) -> float:
        """Map a confidence in [0, 1] to its calibrated probability."""
        if self.method == "isotonic":
            half = len(self.parameters) // 2
            index = bisect_right(self.parameters[:half], confidence) - 1
            return self.parameters[half + max(index, 0)]
        slope, intercept = (1 / self.parameters[0], 0.0) if self.method == "temperature" else self.parameters
        return sigmoid(slope * log_odds(confidence) + intercept)


def log_odds(confidence: float) -> float:
    """Log-odds of a probability, clipped away from 0 and 1 by 1e-6."""
    inside = min(max(confidence, _NEAREST), 1 - _NEAREST)
    return math.log(inside / (1 - inside))


def sigmoid(x: float) -> float:
    """Inverse of the log-odds: the probability 1 / (1 + exp(-x))."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def reliability(confidences: Sequence[float], outcomes: Sequence[bool], bins: int = BINS) -> list[Bin]:
    """Sort items into ``bins`` equal-width confidence bins over [0, 1], each with its mean confidence and accuracy."""
    binned: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for confidence, outcome in zip(confidences, outcomes, strict=True):
        binned[_bin_of(confidence, bins)].append((confidence, outcome))
    return [
        Bin(
            index / bins,
            (index + 1) / bins,
            len(items),
            fmean(c for c, _ in items) if items else 0.0,
            fmean(o for _, o in items) if items else 0.0,
        )
        for index, items in enumerate(binned)
    ]


def _bin_of(confidence: float, bins: int) -> int:
    """Of the bin (low, high] that holds ``confidence``; the first holds 0, too."""
    return min(bins - 1, max(0, math.ceil(confidence * bins) - 1))


def ece(confidences: Sequence[float], outcomes: Sequence[bool], bins: int = BINS) -> float:
    """Expected calibration error (arXiv 1706.04599, equation 3). Biased upward for few items: 0.05 at 300 even for a
    perfect one."""
    gaps = [0.0] * bins
    for confidence, outcome in zip(confidences, outcomes, strict=True):
        gaps[_bin_of(confidence, bins)] += confidence - outcome
    return sum(map(abs, gaps)) / len(confidences) if confidences else 0.0


def ece_interval(
    confidences: Sequence[float], outcomes: Sequence[bool], *, rounds: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """95 % percentile bootstrap interval of ``ece``, resampling items ``rounds`` times."""
    size = len(confidences)
    if not size:
        return 0.0, 1.0
    gaps = _places(confidences) * (np.asarray(confidences) - np.asarray(outcomes))[:, None]
    drawn = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), rounds)
    errors = np.sort(np.abs(drawn @ gaps).sum(axis=1)) / size
    return float(errors[int(0.025 * rounds)]), float(errors[math.ceil(0.975 * rounds) - 1])


def _places(confidences: Sequence[float]) -> npt.NDArray[np.float64]:
    """[items, bins]: 1 where the item is in the bin."""
    members = np.zeros((len(confidences), BINS))
    members[range(len(confidences)), [_bin_of(c, BINS) for c in confidences]] = 1
    return members


def brier(confidences: Sequence[float], outcomes: Sequence[bool]) -> float:
    """Mean squared error of the probability (Brier 1950)."""
    return fmean((c - o) ** 2 for c, o in zip(confidences, outcomes, strict=True)) if confidences else 0.0


def log_loss(confidences: Sequence[float], outcomes: Sequence[bool]) -> float:
    """Mean negative log-probability (nats) of the observed outcomes; probabilities are clipped away from 0 and 1."""
    odds = map(log_odds, confidences)
    return fmean(softplus(-x if o else x) for x, o in zip(odds, outcomes, strict=True)) if confidences else 0.0


def auroc(confidences: Sequence[float], outcomes: Sequence[bool]) -> float | None:
    """Area under the ROC curve: how often a right item has a higher confidence than a wrong one, ties counted half.

    None where all items are right or all are wrong. A constant confidence can be perfectly calibrated and still
    discriminate nothing (0.5).
    """
    wrong = sorted(c for c, o in zip(confidences, outcomes, strict=True) if not o)
    right = [c for c, o in zip(confidences, outcomes, strict=True) if o]
    if not wrong or not right:
        return None
    above = sum(bisect_left(wrong, c) + bisect_right(wrong, c) for c in right)
    return above / (2 * len(wrong) * len(right))


def ece_floor(confidences: Sequence[float], *, rounds: int = 200, seed: int = 0) -> float:
    """Mean ``ece`` of perfectly calibrated outcomes at these confidences: what sampling noise alone produces."""
    if not confidences:
        return 0.0
    predicted = np.asarray(confidences)
    came = np.random.default_rng(seed).random((rounds, len(predicted))) < predicted
    return float(np.abs((predicted - came) @ _places(confidences)).sum(axis=1).mean() / len(predicted))


@dataclass(frozen=True)
class Worth:
    """How well confidences predict ``items`` outcomes, ``right`` of which came: ECE, Brier score and AUROC, each with
    its 95 % bootstrap interval over clusters. ``auroc`` None: all outcomes were alike."""

    items: int
    clusters: int
    right: int
    confidence: float
    """Mean confidence."""
    ece: float
    ece95: tuple[float, float]
    brier: float
    brier95: tuple[float, float]
    auroc: float | None
    auroc95: tuple[float, float] | None


def worth(
    confidences: Sequence[float],
    outcomes: Sequence[bool],
    clusters: Sequence[str] | None = None,
    *,
    rounds: int = 500,
    seed: int = 0,
) -> Worth | None:
    """Measure confidences against outcomes; items of one cluster (attempts at one task) are drawn together.

    None without items. An AUROC's interval leaves draws out in which all outcomes are alike.
    """
    if not confidences:
        return None
    names = {name: index for index, name in enumerate(dict.fromkeys(clusters or ()))}
    places = [names[name] for name in clusters] if clusters else list(range(len(confidences)))
    count = max(places) + 1
    clusters_drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), rounds)
    predicted, came = np.asarray(confidences, float), np.asarray(outcomes, float)
    bins = _places(confidences) * (predicted - came)[:, None]
    parts = max(1, rounds * len(places) // _CELLS)
    draws = (drawn[:, places] for drawn in np.array_split(clusters_drawn, parts))
    measures = [_measures(drawn, predicted, came, bins) for drawn in draws]
    gaps, squares, areas = (np.concatenate(values) for values in zip(*measures, strict=True))
    return Worth(
        items=len(predicted),
        clusters=count,
        right=int(came.sum()),
        confidence=float(predicted.mean()),
        ece=ece(confidences, outcomes),
        ece95=_middle(gaps),
        brier=brier(confidences, outcomes),
        brier95=_middle(squares),
        auroc=auroc(confidences, outcomes),
        auroc95=_middle(areas) if len(areas) else None,
    )


def _measures(drawn: Ints, predicted: Floats, came: Floats, bins: Floats) -> tuple[Floats, Floats, Floats]:
    """ECE, Brier score and AUROC of each draw; [rounds, items] say how often an item was drawn."""
    total = drawn.sum(axis=1)
    gaps: Floats = np.abs(drawn @ bins).sum(axis=1) / total
    squares: Floats = drawn @ (predicted - came) ** 2 / total
    return gaps, squares, _areas(drawn, predicted, came)


def _middle(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """The percentile interval that holds 95 % of ``values``."""
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def _areas(drawn: Ints, predicted: Floats, came: Floats) -> Floats:
    """The AUROC of each draw; [rounds, items] say how often an item was drawn."""
    order = np.argsort(predicted, kind="stable")
    starts = np.unique(predicted[order], return_index=True)[1]
    right = np.add.reduceat(drawn[:, order] * came[order], starts, axis=1)
    wrong = np.add.reduceat(drawn[:, order] * (1 - came[order]), starts, axis=1)
    pairs = right.sum(axis=1) * wrong.sum(axis=1)
    below = np.cumsum(wrong, axis=1) - wrong / 2
    comparable = pairs > 0
    areas: Floats = (right * below).sum(axis=1)[comparable] / pairs[comparable]
    return areas


def folds(outcomes: Sequence[bool], count: int = 5, seed: int = 0) -> list[list[int]]:
    """Split items into ``count`` stratified folds; returns the item indices of each, sorted."""
    rng, dealt = random.Random(seed), 0
    parts: list[list[int]] = [[] for _ in range(count)]
    for kind in (True, False):
        places = [index for index, outcome in enumerate(outcomes) if outcome is kind]
        rng.shuffle(places)
        for index in places:
            parts[dealt % count].append(index)
            dealt += 1
    return [sorted(part) for part in parts if part]


def fit(method: Method, confidences: Sequence[float], outcomes: Sequence[bool]) -> Calibrator:
    """Fit the calibrator of ``method`` to confidences and outcomes.

    Raises:
        ValueError: fewer than two items, or all outcomes are equal.
    """
    if len(confidences) < 2 or len(set(outcomes)) < 2:
        raise ValueError("calibration needs items of both outcomes")
    fitters: dict[str, Callable[[Sequence[float], Sequence[bool]], tuple[float, ...]]] = {
        "temperature": _temperature,
        "platt": _platt,
        "isotonic": _isotonic,
    }
    return Calibrator(method, fitters[method](confidences, outcomes), len(confidences))


def _temperature(confidences: Sequence[float], outcomes: Sequence[bool]) -> tuple[float, ...]:
    """Golden-section search of the lowest log loss over log T in [-4, 4] (arXiv 1706.04599, section 4.2)."""
    odds = [log_odds(c) for c in confidences]

    def loss(log_t: float) -> float:
        scale = math.exp(-log_t)
        return sum(softplus(-scale * x if o else scale * x) for x, o in zip(odds, outcomes, strict=True))

    low, high, golden = -4.0, 4.0, (math.sqrt(5) - 1) / 2
    for _ in range(40):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    return (math.exp((low + high) / 2),)


def softplus(x: float) -> float:
    """The function log(1 + exp(x)), computed without overflow for large x."""
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


def _platt(confidences: Sequence[float], outcomes: Sequence[bool]) -> tuple[float, ...]:
    """Slope and intercept on smoothed targets (Platt 1999; Lin, Lin and Weng 2007)."""
    right = sum(outcomes)
    high, low = (right + 1) / (right + 2), 1 / (len(outcomes) - right + 2)
    rows, targets = [(log_odds(c), 1.0) for c in confidences], [high if outcome else low for outcome in outcomes]
    start = (0.0, math.log((right + 1) / (len(outcomes) - right + 1)))
    slope, intercept = fit_logistic(rows, targets, (0.0, 0.0), start)
    return slope, intercept


def _isotonic(confidences: Sequence[float], outcomes: Sequence[bool]) -> tuple[float, ...]:
    """Pool adjacent violators (Ayer et al. 1955); equal confidences are one point."""
    points: dict[float, list[bool]] = {}
    for confidence, outcome in zip(confidences, outcomes, strict=True):
        points.setdefault(confidence, []).append(outcome)
    blocks: list[list[float]] = []  # threshold, sum, weight
    for threshold in sorted(points):
        blocks.append([threshold, float(sum(points[threshold])), float(len(points[threshold]))])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][2] >= blocks[-1][1] * blocks[-2][2]:
            _, total, weight = blocks.pop()
            blocks[-1][1] += total
            blocks[-1][2] += weight
    return (*(block[0] for block in blocks), *(block[1] / block[2] for block in blocks))
