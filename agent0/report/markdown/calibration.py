"""The Markdown page of a calibration report: how confidences were measured, and how well they predict correctness."""

from collections.abc import Sequence
from typing import Any

from agent0.evaluation.calibration_report import (
    ENOUGH,
    FITTING,
    SCORING,
    TARGET,
    Found,
    format_interval,
    picture,
)
from agent0.events.benchmarks import SAMPLED
from agent0.report.markdown.rendering import render
from agent0.rollout.confidence.signals import MEANING, OF_TURNS

NAIVE = "mean_token"
"""What is usually shown as a confidence."""

WHOLE = "below 0.10, its whole interval"
"""The verdict of a seed that reaches the aim."""


def page(measurements: Sequence[Found], command: str, note: str = "", *, turns: bool = False) -> str:
    """Markdown of a calibration: the answer for each student, one table, the command, and all else folded by section.
    ``note`` is a reviewer's; ``turns``: of single turns, as a router measures them."""
    by_student: dict[str, list[Found]] = {}
    for measurement in measurements:
        by_student.setdefault(f"{measurement.name}, {measurement.checkpoint}", []).append(measurement)
    return render(
        "calibration.md.jinja",
        found=measurements,
        students=[_student(name, seeds) for name, seeds in by_student.items()],
        in_short=[
            {"student": f"{measurement.name}, {measurement.checkpoint}", **_in_short(measurement)}
            for measurement in measurements
        ],
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
        within=_within,
    )


def _signals(measurements: Sequence[Found]) -> dict[str, str]:
    """Those that were measured."""
    named = {name for measurement in measurements for each in measurement.measured for name in each.candidate.names}
    return {name: meaning for name, meaning in {**MEANING, **OF_TURNS}.items() if name in named}


def _student(name: str, seeds: Sequence[Found]) -> dict[str, Any]:
    """Its seeds, and rows of the best calibrators of greedy answers and of sampled ones."""
    carried = "ECE after, by the calibrator of greedy answers"
    drawn = [(measurement.sampled, measurement.carried) for measurement in seeds if measurement.sampled]
    rows = [{**_best(measurement), carried: by and _within(by.ece_after, by.after95)} for measurement, by in drawn]
    best = [_best(measurement) for measurement in seeds]
    return {
        "name": name,
        "seeds": seeds,
        "sampled": [measurement for measurement, _ in drawn],
        "best": best,
        "best_sampled": rows,
    }


def _in_short(measurement: Found) -> dict[str, Any]:
    whole = _best(measurement)
    return {name: whole[name] for name in ("seed", "scored on", "right", "ECE before", "ECE after", "floor", "aim")}


def _within(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.3f} ({format_interval(interval)})"


def _best(measurement: Found) -> dict[str, Any]:
    best = measurement.measured[0]
    return {
        "seed": measurement.seed,
        "fitted on": measurement.fitted_on,
        "scored on": best.scored_on,
        "unanswered": measurement.unanswered,
        "undecided": measurement.undecided,
        "right": measurement.accuracy,
        "ECE of mean_token as it is": next(
            (m.ece_before for m in measurement.measured if m.candidate.signal == NAIVE), None
        ),
        "ECE before": _within(best.ece_before, best.before95),
        "ECE after": _within(best.ece_after, best.after95),
        "floor": best.floor,
        "Brier": f"{best.brier_before:.3f} to {best.brier_after:.3f}",
        "AUROC": best.auroc,
        "aim": measurement.verdict,
    }
