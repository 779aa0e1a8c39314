"""The Markdown page of a calibration report: how confidences were measured, and how well they predict correctness."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent0.evaluation.calibration_report import (
    ENOUGH,
    FITTING,
    SAMPLED,
    SCORING,
    TARGET,
    Found,
    as_row,
    format_interval,
    picture,
)
from agent0.report.markdown.tables import folded, table
from agent0.rollout.confidence.signals import MEANING

NAIVE = "mean_token"
"""What is usually shown as a confidence."""

WHOLE = "below 0.10, its whole interval"
"""The verdict of a seed that reaches the aim."""

MADE = "<!-- Written by `agent0 calibrate --page`; not by hand. -->\n"


def page(found: Sequence[Found], command: str, note: str = "") -> str:
    """Markdown of a calibration: the answer for each student, one table, the command, and all else folded by section.
    ``note`` is a reviewer's."""
    by_student: dict[tuple[str, str], list[Found]] = {}
    for one in found:
        by_student.setdefault((one.name, one.checkpoint), []).append(one)
    lines = [MADE, "# Calibration\n", "How much is a student's confidence worth?\n"]
    lines += [_answer(*student, seeds) for student, seeds in by_student.items()]
    lines += [f"- The aim is an ECE below {TARGET:.2f} on at least {ENOUGH} items.\n"]
    lines += ["The best signal by the fitting half, on greedy answers of the other half:\n"]
    lines += table({"student": f"{one.name}, {one.checkpoint}", **_in_short(one)} for one in found)
    lines += [f"```\n{command}\n```\n", *([f"{note}\n"] if note else []), "## Method\n", *_method(found)]
    for (name, checkpoint), seeds in by_student.items():
        lines += _student(name, checkpoint, seeds)
    return folded("\n".join([*lines, *_signals()]))


def _answer(name: str, checkpoint: str, seeds: Sequence[Found]) -> str:
    sampled = [one.sampled for one in seeds if one.sampled]
    told = f"- **{name}, {checkpoint}:** greedy answers {_range(seeds)}"
    return f"{told}; sampled answers {_range(sampled)}." if sampled else f"{told}."


def _range(seeds: Sequence[Found]) -> str:
    before, after = ([getattr(one.measured[0], name) for one in seeds] for name in ("ece_before", "ece_after"))
    met = sum(one.verdict == WHOLE for one in seeds)
    return (
        f"ECE {min(after):.3f} to {max(after):.3f} after calibration ({min(before):.3f} to {max(before):.3f} before), "
        f"the whole interval below {TARGET:.2f} for {met} of {len(seeds)} seeds"
    )


def _in_short(one: Found) -> dict[str, Any]:
    whole = _best(one)
    return {name: whole[name] for name in ("seed", "scored on", "right", "ECE before", "ECE after", "floor", "aim")}


def _method(found: Sequence[Found]) -> list[str]:
    first = found[0]
    return [
        "A confidence is a promise: of the answers given with 0.7, seven in ten should be right. This page says how "
        "far that holds for answers of small models to held-out tasks, before and after calibration.\n",
        f"Seeds {', '.join(sorted({str(one.seed) for one in found}))}: each draws {first.asked} tasks, and asks each "
        f"once greedily with its tools, and {first.samples} times at the configured temperature. The greedy answer is "
        "the one whose confidence is meant. Calibrators are fitted on tasks of the "
        f"{FITTING} split and scored on tasks of the {SCORING} split; no task can be in both. Signal and method are "
        "chosen by five-fold cross-validated log loss on the fitting half alone. Answers that were not given, or that "
        "cannot be decided, have no confidence or no truth: they are left out and counted.\n",
        "ECE is the expected calibration error over ten bins of equal width, with a 95 % bootstrap interval over "
        "items. It is biased upwards: *floor* is what a perfect predictor with the same confidences would show on as "
        "many items, by chance; resampling adds the same bias once more, so an error at the floor may lie below its "
        "own interval. *Before* is the signal as it is, of several signals their mean. A constant is calibrated "
        "too and tells nothing, so *AUROC* says how often a right answer has the higher confidence (0.5: a "
        "coin), and a table says what a constant gets.\n",
    ]


def _student(name: str, checkpoint: str, seeds: Sequence[Found]) -> list[str]:
    lines = [f"## {name}, {checkpoint}\n", "What is best by the fitting half, on the other half:\n"]
    lines += table([_best(one) for one in seeds])
    lines += ["Always saying the fitting half's share of right answers:\n"]
    lines += table(
        {
            "seed": one.seed,
            "says": one.fitting_accuracy,
            "right": one.accuracy,
            "ECE": one.constant[0],
            "Brier": one.constant[1],
        }
        for one in seeds
    )
    lines += _sampled(seeds)
    shown = seeds[0]
    best = shown.measured[0]
    lines += [
        f"Seed {shown.seed}, right answers (#) by confidence; the mark is where they should end.\n",
        "```",
        "before: the mean of its signals as they are",
        *picture(best.before),
        "",
        f"after: {best.candidate.method}",
        *picture(best.bins),
        "```\n",
    ]
    for one in seeds:
        lines += [f"### Every signal, seed {one.seed}\n", *table(_named(as_row(each)) for each in one.measured)]
    return lines


def _sampled(seeds: Sequence[Found]) -> list[str]:
    """What holds for sampled answers, by their own calibrators and by the greedy ones."""
    rows = [
        {
            **_best(one.sampled),
            "ECE after, by the calibrator of greedy answers": "-"
            if one.carried is None
            else f"{one.carried.ece_after:.3f} ({format_interval(one.carried.after95)})",
        }
        for one in seeds
        if one.sampled
    ]
    if not rows:
        return []
    text = (
        "Attempts of a run are sampled, and a sampled answer is another thing than a greedy one. The first sampled "
        f"answer to each task, with calibrators of its own (under the model's name and `{SAMPLED}`) that read one "
        "attempt alone:\n"
    )
    return [text, *table(rows)]


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
        "ECE before": f"{best.ece_before:.3f} ({format_interval(best.before95)})",
        "ECE after": f"{best.ece_after:.3f} ({format_interval(best.after95)})",
        "floor": best.floor,
        "Brier": f"{best.brier_before:.3f} to {best.brier_after:.3f}",
        "AUROC": best.auroc,
        "aim": one.verdict,
    }


def _named(values: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table of all signals."""
    return {
        "signal": ", ".join(values["signal"].split("+")),
        "method": values["method"],
        "n": values["n"],
        "ECE before": f"{values['ece_before']:.3f} ({values['before_95']})",
        "ECE after": f"{values['ece_after']:.3f} ({values['after_95']})",
        "floor": values["floor"],
        "Brier before": values["brier_before"],
        "Brier after": values["brier_after"],
        "AUROC": values["auroc"],
        "log loss, fitting half": values["log_loss"],
    }


def _signals() -> list[str]:
    return [
        "## The signals\n",
        *(f"- `{name}`: {meaning}" for name, meaning in MEANING.items()),
        "",
        "Of each token only the log-probability of what was chosen is kept, so there is no entropy of a distribution "
        "and no margin to the second best. A provider without log-probabilities has none of the first five; one that "
        "does not say where its tokens end has the first alone. Several signals together are a ridge logistic "
        "regression over their log-odds (`agent0/stats/logistic.py`). Every calibrator is an event, "
        "`CalibratorFitted`, and a row of the table `calibrators`.",
        "",
    ]
