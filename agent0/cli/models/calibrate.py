"""What a student's confidence is worth: measured on held-out tasks, mended, measured again on others."""

import secrets
import shlex
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.evaluation.benchmark_run import adapter_of
from agent0.assembly.evaluation.calibration import Plan
from agent0.assembly.evaluation.calibration import calibrate as measure
from agent0.cli import console, flags, lookup
from agent0.errors import OperationError
from agent0.evaluation.calibration_report import CalibrationReport, as_row, picture
from agent0.report.markdown.calibration import page as page_of

EVERY_S = 5.0
ENOUGH = 10
"""Tasks that must be done before the time left is guessed: models are loaded during the first."""


def calibrate(
    provider: Annotated[str | None, typer.Option(help="tiny, ollama, transformers…")] = None,
    model: Annotated[str | None, typer.Option(help="Model name or folder.")] = None,
    checkpoint: Annotated[
        list[str] | None, typer.Option(help="RUN/CHECKPOINT of a trained student, or base; may be given several times.")
    ] = None,
    items: Annotated[int, typer.Option(min=20, help="Tasks a seed; half of them to fit on.")] = 640,
    samples: Annotated[int, typer.Option(min=0, max=64, help="Further samples a task, for agreement.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Draws tasks and samples.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="How many seeds, from --seed on.")] = 1,
    name: Annotated[
        str, typer.Option(help="Name of the calibrators; empty: the model's, under which it is used.")
    ] = "",
    page: Annotated[
        Path | None, typer.Option(callback=console.in_folder, help="Write what was found as a Markdown page.")
    ] = None,
    note: Annotated[str, typer.Option(help="A sentence for the page: where the students come from.")] = "",
    resume: Annotated[str, typer.Option(help="Id of a calibration to go on with.")] = "",
    profile: console.Profile = None,
    set_: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Ask held-out tasks, fit calibrators of every confidence signal on one half and score them on the other.

    Killed, it goes on with --resume: no task is asked twice."""
    settings = flags.settings(profile, set_, run__student__provider=provider, run__student__model=model)
    identity = resume or f"calibration-{secrets.token_hex(3)}"
    console.say(f"Calibration {identity}: {settings.run.student.provider}, data in {settings.home}")
    measurements: list[CalibrationReport] = []
    for index, student in enumerate(checkpoint or ["base"]):
        for number in range(seed, seed + seeds):
            run = f"{identity}-{index}-{number}"
            measurements.append(_measured(settings, student, run, (items, samples, number), name, as_json))
    if page:
        write_page(page, page_of(measurements, command_line(), note))
    if as_json:
        console.data([plain(measurement) for measurement in measurements])


def _measured(
    settings: Any, student: str, run: str, size: tuple[int, int, int], name: str, quiet: bool
) -> CalibrationReport:
    """Calibrate one student with one seed and report progress. ``size``: items, samples, seed."""
    plan = Plan(*size, name=name, **trained(settings, student))
    measurement = console.run_async(
        lambda: measure(settings, plan, run, Reporter(f"{student}, seed {plan.seed}", quiet))
    )
    if not quiet:
        show(measurement)
    return measurement


def trained(settings: Any, checkpoint: str) -> dict[str, Any]:
    """Find the adapter of ``RUN/CHECKPOINT``, as fields of a plan; none for the base. RUN as ``lookup.run_id`` takes
    it."""
    if checkpoint in ("", "base"):
        return {}
    named, _, name = checkpoint.rpartition("/")
    run = lookup.run_id(named, settings)
    return {"checkpoint": f"{run}/{name}", "adapter": console.run_async(lambda: adapter_of(settings, run, name))}


class Reporter:
    """A line on stderr every few seconds and at the end, with time left."""

    def __init__(self, head: str, quiet: bool) -> None:
        self._head, self._quiet = head, quiet
        self._start = self._last = time.monotonic()
        self._first = -1

    def __call__(self, done: int, all_: int) -> None:
        at = time.monotonic()
        if self._first < 0:
            self._first = done
        if self._quiet or not (done == all_ or at - self._last >= EVERY_S):
            return
        self._last, fresh = at, done - self._first
        left = f"  {(at - self._start) / fresh * (all_ - done):.0f} s left" if fresh >= ENOUGH and done < all_ else ""
        console.say(f"{self._head}: {done}/{all_} tasks{left}")


def show(measurement: CalibrationReport) -> None:
    """The table of all signals, and the picture of the best."""
    screen = console.screen()
    wide = (screen.width,) if screen else ()
    console.text("")
    console.text(
        console.prose(
            f"{measurement.name}, {measurement.checkpoint}, seed {measurement.seed}: fitted on {measurement.fitted_on} "
            f"answers, scored on {measurement.scored_on} others; {measurement.accuracy:.3f} of these are right; "
            f"{measurement.unanswered} of {measurement.attempts} "
            f"tasks unanswered, {measurement.undecided} undecided."
        )
    )
    errors = ("ece_before", "ece_after", "after_95", "floor", "brier_after", "brier_95")
    columns = ("signal", "method", "n", *errors, "auroc", "auroc_95", "log_loss")
    console.table([as_row(calibrator) for calibrator in measurement.measured], False, columns)
    best = measurement.measured[0]
    console.text(f"Before ({best.candidate.signal}):\n" + "\n".join(picture(best.before, *wide)))
    console.text(f"After ({best.candidate.method}):\n" + "\n".join(picture(best.bins, *wide)))
    console.text(f"Aim, ECE below 0.10: {measurement.verdict}.")


def plain(measurement: CalibrationReport) -> dict[str, Any]:
    """Turn what was found into plain values, as JSON has them."""
    kept = {key: value for key, value in asdict(measurement).items() if key not in ("measured", "sampled", "carried")}
    bins = [asdict(interval) for interval in measurement.measured[0].bins]
    kept |= {"sampled": plain(measurement.sampled)} if measurement.sampled else {}
    return {
        **kept,
        "aim": measurement.verdict,
        "calibrators": [as_row(calibrator) for calibrator in measurement.measured],
        "reliability": bins,
    }


def command_line() -> str:
    """This process's command without --note, whose text stands on the page itself."""
    arguments = list(sys.argv[1:])
    if "--note" in arguments:
        position = arguments.index("--note")
        del arguments[position : position + 2]
    return shlex.join(["agent0", *arguments])


def write_page(path: Path, text: str) -> None:
    """Write a page; raises OperationError where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        what, why = "The page cannot be written.", f"{path}: {error.strerror}."
        raise OperationError(what, why, "Name another place: --page FILE") from error
    console.say(f"Written: {path}")
