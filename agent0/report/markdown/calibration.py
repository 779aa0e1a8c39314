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


def page(found: Sequence[Found], command: str, note: str = "", *, turns: bool = False) -> str:
    """Markdown of a calibration: the answer for each student, one table, the command, and all else folded by section.
    ``note`` is a reviewer's; ``turns``: of single turns, as a router measures them."""
    by_student: dict[str, list[Found]] = {}
    for one in found:
        by_student.setdefault(f"{one.name}, {one.checkpoint}", []).append(one)
    return render(
        "calibration.md.jinja",
        found=found,
        students=[_student(name, seeds) for name, seeds in by_student.items()],
        in_short=[{"student": f"{one.name}, {one.checkpoint}", **_in_short(one)} for one in found],
        command=command,
        note=note,
        signals=_signals(found) if turns else MEANING,
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


def _signals(found: Sequence[Found]) -> dict[str, str]:
    """Those that were measured."""
    named = {name for one in found for each in one.measured for name in each.candidate.names}
    return {name: meaning for name, meaning in {**MEANING, **OF_TURNS}.items() if name in named}


def _student(name: str, seeds: Sequence[Found]) -> dict[str, Any]:
    """Its seeds, and rows of the best calibrators of greedy answers and of sampled ones."""
    carried = "ECE after, by the calibrator of greedy answers"
    drawn = [(one.sampled, one.carried) for one in seeds if one.sampled]
    rows = [{**_best(one), carried: by and _within(by.ece_after, by.after95)} for one, by in drawn]
    best = [_best(one) for one in seeds]
    return {"name": name, "seeds": seeds, "sampled": [one for one, _ in drawn], "best": best, "best_sampled": rows}


def _in_short(one: Found) -> dict[str, Any]:
    whole = _best(one)
    return {name: whole[name] for name in ("seed", "scored on", "right", "ECE before", "ECE after", "floor", "aim")}


def _within(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.3f} ({format_interval(interval)})"


def _best(one: Found) -> dict[str, Any]:
    best = one.measured[0]
    return {
        "seed": one.seed,
        "fitted on": one.fitted_on,
        "scored on": best.scored_on,
        "unanswered": one.unanswered,
        "undecided": one.undecided,
        "right": one.accuracy,
        "ECE of mean_token as it is": next((m.ece_before for m in one.measured if m.candidate.signal == NAIVE), None),
        "ECE before": _within(best.ece_before, best.before95),
        "ECE after": _within(best.ece_after, best.after95),
        "floor": best.floor,
        "Brier": f"{best.brier_before:.3f} to {best.brier_after:.3f}",
        "AUROC": best.auroc,
        "aim": one.verdict,
    }
