"""The calibration of a student's confidence: fitted on held-out tasks of one split, scored on those of another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from agent0.events.benchmarks import SAMPLED, CalibratorFitted, ItemScored
from agent0.events.values import ReliabilityBin, Split
from agent0.rollout.confidence.calibration import Item, Measured, fitted, learnable, measured
from agent0.rollout.confidence.signals import SEVERAL
from agent0.stats.calibrators import Bin, brier, ece

FITTING: Split = "validation"
SCORING: Split = "test"
"""No task is in both, whatever the seed: the split is a property of the task."""

TARGET = 0.10
"""Expected calibration error to stay below, on at least ``ENOUGH`` items."""

ENOUGH = 300
WIDTH, BESIDE = 40, 50
"""Columns of a bar, and of what stands beside it."""


@dataclass(frozen=True)
class Found:
    """The calibration of one student (``checkpoint`` of model ``name``) for one ``seed``. ``measured`` is best first,
    by the fitting half, and ``revisions`` says by signal which calibrators they are.

    ``unanswered`` and ``undecided`` items have no confidence or no verdict, and are left out. ``constant`` is the (ECE,
    Brier) on the scoring half of always predicting the fitting half's accuracy. ``sampled`` is the same for one sampled
    answer per task, as attempts of a run are, and ``carried`` the best greedy calibrator on those.
    """

    run: str
    name: str
    checkpoint: str
    seed: int
    samples: int
    asked: int
    unanswered: int
    undecided: int
    fitted_on: int
    scored_on: int
    fitting_accuracy: float
    accuracy: float
    constant: tuple[float, float]
    measured: tuple[Measured, ...]
    revisions: Mapping[str, int] = field(default_factory=dict)
    sampled: "Found | None" = None
    carried: Measured | None = None

    @property
    def verdict(self) -> str:
        """The verdict on the best calibrator, in words."""
        best = self.measured[0]
        if best.scored_on < ENOUGH:
            return f"not shown: only {best.scored_on} items"
        if best.after95[1] < TARGET:
            return "below 0.10, its whole interval"
        return "below 0.10, not its whole interval" if best.ece_after < TARGET else "missed: 0.10 or more"


def judged(run: str, name: str, checkpoint: str, seed: int, scored: Sequence[ItemScored]) -> Found:
    """Measure calibration from greedy answers (sample 0) among ``scored``, and from sampled ones (sample 1) apart.

    ``benchmark`` of each item is its split.

    Raises:
        ValueError: too few right or too few wrong answers to fit anything.
    """
    found = _judged(run, name, checkpoint, seed, [one for one in scored if one.sample == 0])
    found = replace(found, samples=max((one.sample for one in scored), default=0))
    drawn = [one for one in scored if one.sample == 1]
    if not learnable(_items(drawn, FITTING)):
        return found
    alone = next((one.candidate for one in found.measured if not set(one.candidate.names) & set(SEVERAL)), None)
    carried = measured(alone, _items(drawn, SCORING)) if alone else None
    return replace(found, sampled=_judged(run, f"{name} {SAMPLED}", checkpoint, seed, drawn), carried=carried)


def _judged(run: str, name: str, checkpoint: str, seed: int, scored: Sequence[ItemScored]) -> Found:
    """The same for one answer a task."""
    fitting, scoring = _items(scored, FITTING), _items(scored, SCORING)
    candidates = fitted(fitting)
    rights = [item.right for item in scoring]
    share = fmean(item.right for item in fitting)
    said = [share] * len(scoring)
    return Found(
        run,
        name,
        checkpoint,
        seed,
        samples=0,
        asked=len(scored),
        unanswered=sum(one.answer is None for one in scored),
        undecided=sum(one.answer is not None and one.correct is None for one in scored),
        fitted_on=len(fitting),
        scored_on=len(scoring),
        fitting_accuracy=share,
        accuracy=fmean(rights) if rights else 0.0,
        constant=(ece(said, rights), brier(said, rights)),
        measured=tuple(measured(one, scoring) for one in candidates),
    )


def _items(scored: Sequence[ItemScored], split: Split) -> list[Item]:
    """Those of ``split`` that have an answer and a truth."""
    kept = [one for one in scored if one.benchmark == split and one.answer is not None and one.correct is not None]
    return [Item(one.signals, one.correct is True) for one in kept]


def to_event(found: Found, one: Measured, revision: int) -> CalibratorFitted:
    """Turn one measured calibrator of ``found`` into the event that records it."""
    made = one.candidate
    return CalibratorFitted(
        name=found.name,
        signal=made.signal,
        method=made.method,
        parameters=made.parameters,
        fitted_on=made.fitted_on,
        scored_on=one.scored_on,
        ece_before=one.ece_before,
        ece_after=one.ece_after,
        lower95=one.after95[0],
        upper95=one.after95[1],
        brier_before=one.brier_before,
        brier_after=one.brier_after,
        source=found.run,
        revision=revision,
        checkpoint=found.checkpoint,
        before_lower95=one.before95[0],
        before_upper95=one.before95[1],
        reliability=tuple(ReliabilityBin(confidence=b.confidence, accuracy=b.accuracy, items=b.n) for b in one.bins),
        log_loss=made.loss,
        auroc=one.auroc,
        ece_floor=one.floor,
    )


def picture(bins: Sequence[Bin], wide: int = WIDTH + BESIDE) -> list[str]:
    """Draw a reliability diagram as text, lines of at most ``wide`` columns: one line per bin, a bar for accuracy and a
    mark at its confidence."""
    width = max(1, min(WIDTH, wide - BESIDE))
    lines = []
    for one in bins:
        bar, mark = round(one.accuracy * width), min(round(one.confidence * width), width - 1)
        drawn = "".join("|" if n == mark else "#" if n < bar else " " for n in range(width))
        told = f"said {one.confidence:.2f}  right {one.accuracy:.2f}  items {one.n:>4}"
        lines.append(f"{one.low:.1f} to {one.high:.1f}  [{drawn}]  {told}")
    return lines


def as_row(one: Measured) -> dict[str, Any]:
    """Turn one measured calibrator into a table row."""
    return {
        "signal": one.candidate.signal,
        "method": one.candidate.method,
        "n": one.scored_on,
        "ece_before": one.ece_before,
        "before_95": format_interval(one.before95),
        "ece_after": one.ece_after,
        "after_95": format_interval(one.after95),
        "floor": one.floor,
        "brier_before": one.brier_before,
        "brier_after": one.brier_after,
        "brier_95": format_interval(one.brier95),
        "auroc": one.auroc,
        "auroc_95": format_interval(one.auroc95) if one.auroc95 else None,
        "log_loss": one.candidate.loss,
    }


def format_interval(interval: tuple[float, float]) -> str:
    """Format an interval as text, for tables and messages."""
    return f"{interval[0]:.3f} to {interval[1]:.3f}"
