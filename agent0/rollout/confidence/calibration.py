"""Chooses the confidence signal and calibrator that predict right answers best, by cross-validated log loss on the
fitting items."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from agent0.rollout.confidence.signals import MEANING, OF_TURNS, SEVERAL
from agent0.stats.calibrators import (
    Bin,
    Calibrator,
    auroc,
    brier,
    ece,
    ece_floor,
    ece_interval,
    fit,
    folds,
    log_loss,
    reliability,
    worth,
)
from agent0.stats.logistic import Fusion, Signals, fuse

Method = Literal["temperature", "platt", "isotonic", "logistic"]
SINGLE: tuple[Literal["temperature", "platt", "isotonic"], ...] = ("temperature", "platt", "isotonic")
JOINED = "+"
"""Between the names of signals that are fused."""

FEWEST = 20
"""Items that must have a signal before it is used."""

Fitter = Callable[[Sequence[Signals], Sequence[bool]], "Candidate"]


@dataclass(frozen=True)
class CalibrationItem:
    """One answer: its confidence signals, and whether it is right."""

    signals: Mapping[str, float]
    right: bool


@dataclass(frozen=True)
class Candidate:
    """A fitted map from signals to a probability.

    ``signal`` names one, or several with ``JOINED`` between them; ``parameters`` are those of ``Calibrator`` and
    ``Fusion``; ``loss`` is the cross-validated log loss.
    """

    signal: str
    method: Method
    parameters: tuple[float, ...]
    fitted_on: int
    loss: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the signals it reads."""
        return tuple(self.signal.split(JOINED))

    def fits(self, signals: Signals) -> bool:
        """Whether ``signals`` have what it needs: the only one, or some, and those of further samples where it was
        fitted with such."""
        available = [name for name in self.names if name in signals]
        return bool(available) and all(name in available for name in self.names if name in SEVERAL)

    def apply(self, signals: Signals) -> float:
        """The probability that the answer is right. ``signals`` must fit."""
        if self.method == "logistic":
            return Fusion(self.names, self.parameters, self.fitted_on).apply(signals)
        return Calibrator(self.method, self.parameters, self.fitted_on).apply(signals[self.signal])

    def raw(self, signals: Signals) -> float:
        """The uncalibrated confidence: the mean of its signals."""
        return fmean(signals[name] for name in self.names if name in signals)


@dataclass(frozen=True)
class MeasuredCalibrator:
    """The calibration of a candidate on items it was not fitted on.

    Intervals are 95 %, those of Brier score and AUROC after calibration; ``floor`` is the ECE that sampling noise gives
    a perfect one; ``bins`` are those with items.
    """

    candidate: Candidate
    scored_on: int
    ece_before: float
    before95: tuple[float, float]
    ece_after: float
    after95: tuple[float, float]
    floor: float
    brier_before: float
    brier_after: float
    auroc: float | None
    before: tuple[Bin, ...]
    bins: tuple[Bin, ...]
    brier95: tuple[float, float] = (0.0, 1.0)
    auroc95: tuple[float, float] | None = None


def learnable(items: Sequence[CalibrationItem]) -> bool:
    """Whether there are at least two right and two wrong answers, as cross-validation needs."""
    rights = sum(item.right for item in items)
    return min(rights, len(items) - rights) >= 2


def fitted(items: Sequence[CalibrationItem], seed: int = 0) -> list[Candidate]:
    """Fit a candidate for each signal that every item has, by its best method, and for all signals fused; best first.

    The signals of one attempt are fused, and where there are further samples all of them.

    Raises:
        ValueError: fewer than two items of either outcome.
    """
    outcomes = [item.right for item in items]
    if not learnable(items):
        raise ValueError("calibration needs at least two right and two wrong answers")
    rows = [item.signals for item in items]
    usable = [name for name in (*MEANING, *OF_TURNS) if sum(name in row for row in rows) >= min(FEWEST, len(rows))]
    parts = folds(outcomes, seed=seed)
    candidates = [
        min((_validated(_single(name, method), rows, outcomes, parts) for method in SINGLE), key=_loss)
        for name in usable
        if all(name in row for row in rows)
    ]
    alone = tuple(name for name in usable if name not in SEVERAL)
    for names in dict.fromkeys((alone, tuple(usable))):
        if len(names) > 1:
            candidates.append(_validated(_fused(names), rows, outcomes, parts))
    return sorted(candidates, key=_loss)


def _loss(candidate: Candidate) -> float:
    return candidate.loss


def _single(name: str, method: Literal["temperature", "platt", "isotonic"]) -> Fitter:
    def fit_single(rows: Sequence[Signals], outcomes: Sequence[bool]) -> Candidate:
        return Candidate(name, method, fit(method, [row[name] for row in rows], outcomes).parameters, len(rows))

    return fit_single


def _fused(names: Sequence[str]) -> Fitter:
    def fit_fused(rows: Sequence[Signals], outcomes: Sequence[bool]) -> Candidate:
        return Candidate(JOINED.join(names), "logistic", fuse(names, rows, outcomes).parameters, len(rows))

    return fit_fused


def _validated(
    fitter: Fitter, rows: Sequence[Signals], outcomes: Sequence[bool], parts: Sequence[Sequence[int]]
) -> Candidate:
    """Fitted on all, with the log loss of predictions for each part by what was fitted on the others."""
    predicted: list[float] = []
    came: list[bool] = []
    for part in parts:
        held_out = set(part)
        others = [index for index in range(len(rows)) if index not in held_out]
        candidate = fitter([rows[index] for index in others], [outcomes[index] for index in others])
        predicted += [candidate.apply(rows[index]) for index in part]
        came += [outcomes[index] for index in part]
    whole = fitter(rows, outcomes)
    return Candidate(whole.signal, whole.method, whole.parameters, whole.fitted_on, log_loss(predicted, came))


def measured(candidate: Candidate, items: Sequence[CalibrationItem], seed: int = 0) -> MeasuredCalibrator:
    """Measure a candidate before and after calibration, on those ``items`` that have the signals it needs."""
    usable = [item for item in items if candidate.fits(item.signals)]
    came = [item.right for item in usable]
    before = [candidate.raw(item.signals) for item in usable]
    after = [candidate.apply(item.signals) for item in usable]
    quality = worth(after, came, seed=seed)
    return MeasuredCalibrator(
        candidate,
        len(usable),
        ece(before, came),
        ece_interval(before, came, seed=seed),
        ece(after, came),
        ece_interval(after, came, seed=seed),
        ece_floor(after, seed=seed),
        brier(before, came),
        brier(after, came),
        auroc(after, came),
        tuple(b for b in reliability(before, came) if b.n),
        tuple(b for b in reliability(after, came) if b.n),
        quality.brier95 if quality else (0.0, 1.0),
        quality.auroc95 if quality else None,
    )
