"""The calibration of a student's confidence: fitted on held-out tasks of one split, scored on those of another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from agent0.events.benchmarks import SAMPLED, CalibratorFitted, ItemScored
from agent0.events.values import ReliabilityBin, Split
from agent0.rollout.confidence.calibration import CalibrationItem, MeasuredCalibrator, fitted, learnable, measured
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
class CalibrationReport:
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
    attempts: int
    unanswered: int
    undecided: int
    fitted_on: int
    scored_on: int
    fitting_accuracy: float
    accuracy: float
    constant: tuple[float, float]
    measured: tuple[MeasuredCalibrator, ...]
    revisions: Mapping[str, int] = field(default_factory=dict)
    sampled: "CalibrationReport | None" = None
    carried: MeasuredCalibrator | None = None

    @property
    def verdict(self) -> str:
        """The verdict on the best calibrator, in words."""
        best = self.measured[0]
        if best.scored_on < ENOUGH:
            return f"not shown: only {best.scored_on} items"
        if best.after95[1] < TARGET:
            return "below 0.10, its whole interval"
        return "below 0.10, not its whole interval" if best.ece_after < TARGET else "missed: 0.10 or more"


def judged(run: str, name: str, checkpoint: str, seed: int, scored: Sequence[ItemScored]) -> CalibrationReport:
    """Measure calibration from greedy answers (sample 0) among ``scored``, and from sampled ones (sample 1) apart.

    ``benchmark`` of each item is its split.

    Raises:
        ValueError: too few right or too few wrong answers to fit anything.
    """
    report = _judged(run, name, checkpoint, seed, [item for item in scored if item.sample == 0])
    report = replace(report, samples=max((item.sample for item in scored), default=0))
    drawn = [item for item in scored if item.sample == 1]
    if not learnable(_items(drawn, FITTING)):
        return report
    alone = next(
        (calibrator.candidate for calibrator in report.measured if not set(calibrator.candidate.names) & set(SEVERAL)),
        None,
    )
    carried = measured(alone, _items(drawn, SCORING)) if alone else None
    return replace(report, sampled=_judged(run, f"{name} {SAMPLED}", checkpoint, seed, drawn), carried=carried)


def _judged(run: str, name: str, checkpoint: str, seed: int, scored: Sequence[ItemScored]) -> CalibrationReport:
    """The same for one answer a task."""
    fitting, scoring = _items(scored, FITTING), _items(scored, SCORING)
    candidates = fitted(fitting)
    rights = [item.right for item in scoring]
    share = fmean(item.right for item in fitting)
    constant = [share] * len(scoring)
    return CalibrationReport(
        run,
        name,
        checkpoint,
        seed,
        samples=0,
        attempts=len(scored),
        unanswered=sum(item.answer is None for item in scored),
        undecided=sum(item.answer is not None and item.correct is None for item in scored),
        fitted_on=len(fitting),
        scored_on=len(scoring),
        fitting_accuracy=share,
        accuracy=fmean(rights) if rights else 0.0,
        constant=(ece(constant, rights), brier(constant, rights)),
        measured=tuple(measured(candidate, scoring) for candidate in candidates),
    )


def _items(scored: Sequence[ItemScored], split: Split) -> list[CalibrationItem]:
    """Those of ``split`` that have an answer and a truth."""
    kept = [item for item in scored if item.benchmark == split and item.answer is not None and item.correct is not None]
    return [CalibrationItem(item.signals, item.correct is True) for item in kept]


def to_event(report: CalibrationReport, calibrator: MeasuredCalibrator, revision: int) -> CalibratorFitted:
    """Turn one measured calibrator of ``report`` into the event that records it."""
    candidate = calibrator.candidate
    return CalibratorFitted(
        name=report.name,
        signal=candidate.signal,
        method=candidate.method,
        parameters=candidate.parameters,
        fitted_on=candidate.fitted_on,
        scored_on=calibrator.scored_on,
        ece_before=calibrator.ece_before,
        ece_after=calibrator.ece_after,
        lower95=calibrator.after95[0],
        upper95=calibrator.after95[1],
        brier_before=calibrator.brier_before,
        brier_after=calibrator.brier_after,
        source=report.run,
        revision=revision,
        checkpoint=report.checkpoint,
        before_lower95=calibrator.before95[0],
        before_upper95=calibrator.before95[1],
        reliability=tuple(
            ReliabilityBin(confidence=b.confidence, accuracy=b.accuracy, items=b.n) for b in calibrator.bins
        ),
        log_loss=candidate.loss,
        auroc=calibrator.auroc,
        ece_floor=calibrator.floor,
    )


def picture(bins: Sequence[Bin], wide: int = WIDTH + BESIDE) -> list[str]:
    """Draw a reliability diagram as text, lines of at most ``wide`` columns: one line per bin, a bar for accuracy and a
    mark at its confidence."""
    width = max(1, min(WIDTH, wide - BESIDE))
    lines = []
    for reliability_bin in bins:
        bar, mark = round(reliability_bin.accuracy * width), min(round(reliability_bin.confidence * width), width - 1)
        drawn = "".join("|" if n == mark else "#" if n < bar else " " for n in range(width))
        caption = (
            f"said {reliability_bin.confidence:.2f}  right {reliability_bin.accuracy:.2f}  items {reliability_bin.n:>4}"
        )
        lines.append(f"{reliability_bin.low:.1f} to {reliability_bin.high:.1f}  [{drawn}]  {caption}")
    return lines


def as_row(calibrator: MeasuredCalibrator) -> dict[str, str | float | None]:
    """Turn one measured calibrator into a table row."""
    return {
        "signal": calibrator.candidate.signal,
        "method": calibrator.candidate.method,
        "n": calibrator.scored_on,
        "ece_before": calibrator.ece_before,
        "before_95": format_interval(calibrator.before95),
        "ece_after": calibrator.ece_after,
        "after_95": format_interval(calibrator.after95),
        "floor": calibrator.floor,
        "brier_before": calibrator.brier_before,
        "brier_after": calibrator.brier_after,
        "brier_95": format_interval(calibrator.brier95),
        "auroc": calibrator.auroc,
        "auroc_95": format_interval(calibrator.auroc95) if calibrator.auroc95 else None,
        "log_loss": calibrator.candidate.loss,
    }


def format_interval(interval: tuple[float, float]) -> str:
    """Format an interval as text, for tables and messages."""
    return f"{interval[0]:.3f} to {interval[1]:.3f}"
