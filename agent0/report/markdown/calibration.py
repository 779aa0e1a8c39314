"""The Markdown page of a calibration report: how confidences were measured, and how well they predict correctness."""

from collections.abc import Sequence

from agent0.evaluation.calibration_report import (
    ENOUGH,
    FITTING,
    SCORING,
    TARGET,
    CalibrationReport,
    format_interval,
    picture,
)
from agent0.events.benchmarks import SAMPLED
from agent0.report.markdown.rendering import render
from agent0.rollout.confidence.calibration import MeasuredCalibrator
from agent0.rollout.confidence.signals import MEANING, OF_TURNS

WHOLE = "below 0.10, its whole interval"
"""The verdict of a seed that reaches the aim."""


def page(measurements: Sequence[CalibrationReport], command: str, note: str = "", *, turns: bool = False) -> str:
    """Markdown of a calibration: the answer for each student, one table, the command, and all else folded by section.
    ``note`` is a reviewer's; ``turns``: of single turns, as a router measures them."""
    by_student: dict[str, list[CalibrationReport]] = {}
    for measurement in measurements:
        by_student.setdefault(f"{measurement.name}, {measurement.checkpoint}", []).append(measurement)
    students = [_student(name, seeds) for name, seeds in by_student.items()]
    best = [{"student": name, **row} for name, seeds in by_student.items() for row in map(_best_beside, seeds)]
    return render(
        "calibration.md.jinja",
        found=measurements,
        students=students,
        best=best,
        command=command,
        note=note,
        signals=_signals(measurements) if turns else MEANING,
        turns=turns,
        by_sampled=SAMPLED,
        fitting=FITTING,
        scoring=SCORING,
        target=TARGET,
        enough=ENOUGH,
        whole=WHOLE,
        picture=picture,
    )


def _signals(measurements: Sequence[CalibrationReport]) -> dict[str, str]:
    """Those that were measured."""
    named = {name for measurement in measurements for each in measurement.measured for name in each.candidate.names}
    return {name: meaning for name, meaning in {**MEANING, **OF_TURNS}.items() if name in named}


def _student(name: str, seeds: Sequence[CalibrationReport]) -> dict[str, object]:
    """Its seeds, rows of the best calibrators of greedy answers and of sampled ones, and a row for each signal."""
    carried = "ECE after, by the calibrator of greedy answers"
    drawn = [(measurement.sampled, measurement.carried) for measurement in seeds if measurement.sampled]
    rows = [{**_best(measurement), carried: by and _within(by.ece_after, by.after95)} for measurement, by in drawn]
    return {
        "name": name,
        "seeds": seeds,
        "sampled": [measurement for measurement, _ in drawn],
        "best": [*map(_best_beside, seeds)],
        "best_sampled": rows,
        "signals": [_by_seed(each.candidate.signal, seeds) for each in seeds[0].measured],
    }


def _by_seed(signal: str, seeds: Sequence[CalibrationReport]) -> dict[str, str]:
    """A row for a signal, or for several together: its method and its measures, a value for each seed, or a dash."""
    measured = [next((m for m in seed.measured if m.candidate.signal == signal), None) for seed in seeds]
    present = [each for each in measured if each]
    fields = {"ECE before": "ece_before", "ECE after": "ece_after", "Brier after": "brier_after", "AUROC": "auroc"}
    measures = {
        column: ", ".join(_digits(getattr(each, field, None)) for each in measured) for column, field in fields.items()
    }
    methods = dict.fromkeys(each.candidate.method for each in present)
    return {"signal": _label(present[0]), "method": ", ".join(methods), **measures}


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _label(measured: MeasuredCalibrator) -> str:
    names = measured.candidate.names
    return names[0] if len(names) == 1 else f"{len(names)} together"


def _within(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.3f} ({format_interval(interval)})"


def _best(measurement: CalibrationReport) -> dict[str, object]:
    best = measurement.measured[0]
    return {
        "seed": measurement.seed,
        "scored on": best.scored_on,
        "left out": measurement.unanswered + measurement.undecided,
        "right": measurement.accuracy,
        "ECE before": _within(best.ece_before, best.before95),
        "ECE after": _within(best.ece_after, best.after95),
        "floor": best.floor,
        "Brier": f"{best.brier_before:.3f} to {best.brier_after:.3f}",
        "AUROC": best.auroc,
        "aim": measurement.verdict,
    }


def _best_beside(measurement: CalibrationReport) -> dict[str, object]:
    """The same with the best signal, and what a constant gets: the fitting half's share of right answers."""
    signal = _label(measurement.measured[0])
    return {**_best(measurement), "best signal": signal, "ECE of a constant": measurement.constant[0]}
