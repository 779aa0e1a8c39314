"""What a run came to, or its state at any event."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from agent0.assembly.log.carriers import carrier_line, known_here
from agent0.cli import console, flags, lookup
from agent0.cli.runs import positions
from agent0.cli.runs.states import show_at
from agent0.report.alarm_groups import alarm_lines
from agent0.report.columns import STEP_COLUMNS
from agent0.report.diagnosis.findings import Diagnosis, why_lines
from agent0.report.overview import curve_columns, failures_for_people, overview, rows_for_people
from agent0.report.run_benchmarks import benchmark_rows
from agent0.settings import Settings
from agent0.state.run_state import first_student


def show(
    run: console.Run = "LAST",
    at: Annotated[str, typer.Option(metavar="WHERE", help=f"Its whole state then instead: {positions.HELP}.")] = "",
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """What a run came to in three lines; with --full its scores, learning curve and targets. Or its state at any
    event."""
    if at:
        show_at(run, at, as_json)
        return
    with lookup.tables() as db:
        summary = overview(db, run, known_here(flags.settings()))
    if as_json:
        console.data(summary)
        return
    print_answer(flags.settings(), summary)
    if full:
        console.text("")
        print_tables(summary)
    else:
        console.say(f"Tables: agent0 run show {summary['run']} --full. Page: agent0 report {summary['run']}")


def print_answer(settings: Settings, summary: dict[str, Any]) -> None:
    """Print why a run went badly, what it came to in a few lines, who carries it where it goes on, and what somebody
    should look at."""
    print_why(summary["why"])
    console.print_lines(summary["answer"])
    if summary["status"] == "running" and summary["carried"] is not False:
        console.print_lines([carrier_line(settings, summary["run"])])
    if summary["alarms"]:
        console.print_lines(["", "Alarms that stand", *alarm_lines(summary["alarm_kinds"])])
    if summary["failures"]:
        console.print_lines(["", "Reactions that were given up", *failures_for_people(summary)])


def print_tables(summary: dict[str, Any]) -> None:
    """Print the tables of ``run show --full``: the run, its learning curve, the held-out test, targets."""
    names = ("run", "name", "status", "profile", "seed", "iteration", "iterations", "tasks", "attempts", "events")
    cause = {name: summary[name] for name in ("failed", "waits_for") if summary[name]}
    if summary["evaluating"]:
        cause["evaluating"] = ", ".join(f"{e['evaluation']} {e['scored']}/{e['n']}" for e in summary["evaluating"])
    if summary["refused"]:
        cause["refused"] = ", ".join(f"{reason} {n:,}" for reason, n in summary["refused"].items())
    row = {name: summary[name] for name in (*names, "wall_s", "student", "config_sha")} | cause
    console.record(row, False)
    start = first_student(summary["student_adapter"])
    if summary["validation"]:
        columns = curve_columns(summary["validation"])
        curve = [row if row["iteration"] >= 0 else {**row, "iteration": start} for row in summary["validation"]]
        console.table(curve, False, columns, title="\nLearning curve, on validation")
    if summary["test"]:
        console.table(rows_for_people(summary), False, title="\nHeld-out test, scored for the first and the last only")
    if summary["trainings"]:
        console.table(summary["trainings"], False, STEP_COLUMNS, title="\nTrainings, from each of their steps")
    if summary["benchmarks"]:
        rows = benchmark_rows(summary["benchmarks"], start)
        console.table(rows, False, title="\nBenchmarks, the same items each time")
    labels = {True: "met", False: "missed", None: "not measured"}
    rows = [
        {**row, "met": ", ".join(filter(None, (labels[row["met"]], row["rests_on"])))} for row in summary["targets"]
    ]
    columns = ("target", "wanted", "value", "met", "measure")
    console.table(rows, False, columns, title="\nTargets")


def print_why(findings: Diagnosis) -> None:
    """Print the lines of a diagnosis that stand on top of other outputs; nothing where nothing went badly."""
    if not findings["well"]:
        print_findings([*why_lines(findings), f"More: agent0 run why {findings['run']}", ""])


def print_findings(lines: Iterable[str]) -> None:
    """Cut between words on a terminal, but for a command, which is there to be copied."""
    for line in lines:
        if "agent0 " in line:
            console.text(line)
        else:
            console.print_lines([line])
