"""What a run came to, in one object: its row, its learning curve, and which targets it met."""

import sqlite3
from typing import TypedDict

from agent0.projections.alarms import list_alarms
from agent0.projections.base import Row
from agent0.projections.evaluations import learning_curve, list_evaluations, scores_with_shared, shared_curve
from agent0.projections.failures import list_missing
from agent0.projections.indexes import rejections
from agent0.projections.iterations import list_iterations
from agent0.projections.runs import held_out_column, iterations_made, show_run
from agent0.projections.training_steps import list_trainings
from agent0.projections.verdicts import opinions
from agent0.report.alarm_groups import grouped
from agent0.report.answers import held_out_gain, run_answer
from agent0.report.columns import WITHIN
from agent0.report.diagnosis.findings import Conclusion, diagnosis
from agent0.report.diagnosis.iterations import iterations_of
from agent0.report.run_benchmarks import benchmark_scores, target_rows
from agent0.report.targets import TargetRow
from agent0.run.diagnosis.local_state import LocalState
from agent0.state.run_state import first_student

NOWHERE = LocalState()


class DeepParts(TypedDict):
    """What takes all attempts of a run: why it went badly, and the targets that it met."""

    why: Conclusion
    targets: list[TargetRow]


def overview(db: sqlite3.Connection, run: str, here: LocalState = NOWHERE, *, deep: DeepParts | None = None) -> Row:
    """Collect everything that ``run show --json`` prints. ``validation`` has one entry per iteration, ``base`` being
    -1; ``shared`` has those of its parents in a fork, and ``test`` begins with theirs. ``here``: what this machine
    knows of the runs of a data folder (``agent0.assembly.log.carriers``). ``deep``: what ``deep_parts`` gave before,
    None: it is read now.

    Raises:
        NotFoundError: there is no such run.
    """
    row = _carried(show_run(db, run), here)
    deep, iterations = deep_parts(db, row["run"], here) if deep is None else deep, iterations_made(row)
    config, measures = row.pop("config"), list_iterations(db, row["run"])
    contrast = {name: int(sum(m[name] or 0 for m in measures)) for name in ("refilled", "no_contrast")}
    scores = list_evaluations(db, row["run"])
    done = [e for e in scores if e["status"] == "evaluated"]
    tests = [e for e in scores_with_shared(db, row["run"]) if e["split"] == "test"]
    summary = {
        **row,
        **_held_out(row, tests),
        "why": deep["why"],
        "iterations": iterations,
        "tasks_asked": iterations * config["tasks"] + contrast["refilled"],
        **contrast,
        "shared": shared_curve(db, row["run"]),
        "validation": learning_curve(db, row["run"]),
        "evaluating": _under_way(scores) if row["status"] in ("running", "paused") else [],
        "test": [_measured(e) for e in tests],
        "truncated": [{name: e[name] for name in ("evaluation", "truncated", "n")} for e in done if e["truncated"]],
        **_alarms(db, row["run"]),
        "trainings": list_trainings(db, row["run"]),
        "failures": list_missing(db, row["run"]),
        "judged": opinions(db, row["run"]),
        "refused": {row["reason"]: row["tasks"] for row in rejections(db, row["run"])},
        "benchmarks": benchmark_scores(db, row["run"], done),
        "targets": deep["targets"],
        "config": config,
        "gain": held_out_gain(tests),
    }
    return {**summary, "answer": run_answer(summary)}


def _carried(row: Row, here: LocalState) -> Row:
    """``row`` of a run with whether it is carried, and what it waits for where its events do not say it."""
    if row["status"] != "running":
        return {**row, "carried": None}
    return {**row, "carried": here.get("carried"), "waits_for": row["waits_for"] or here.get("waits") or None}


def deep_parts(db: sqlite3.Connection, run: str, here: LocalState = NOWHERE) -> DeepParts:
    """Read the parts that take all attempts of a run."""
    done = [evaluation for evaluation in list_evaluations(db, run) if evaluation["status"] == "evaluated"]
    benchmarks, config = benchmark_scores(db, run, done), show_run(db, run)["config"]
    targets = target_rows(db, run, done, benchmarks, config)
    return {"why": diagnosis(db, run, here), "targets": targets}


def _alarms(db: sqlite3.Connection, run: str) -> Row:
    """Alarms that stand, each and by kind."""
    alarms = list_alarms(db, run)
    return {"alarms": alarms, "alarm_kinds": grouped(alarms, iterations_of(db, run)) if alarms else []}


def _held_out(row: Row, tests: list[Row]) -> Row:
    """The test scores of the run of ``row``: those of ``tests`` that a fork shares where it has none of its own."""
    scores: Row = {}
    for test in tests:
        name = held_out_column(test["evaluation"], test["forced_tool"])
        scores[name] = scores.get(name, test["accuracy"]) if name == "heldout_first" else test["accuracy"]
    return {name: score for name, score in scores.items() if row[name] is None}


def _under_way(scores: list[Row]) -> list[Row]:
    """Evaluations that are not finished: items scored of how many."""
    left = [e for e in scores if e["status"] == "requested"]
    return [{"evaluation": e["evaluation"], "scored": e["scored"] or 0, "n": e["n"]} for e in left]


def _measured(evaluation: Row) -> Row:
    names = ("evaluation", "checkpoint", "iteration", "forced_tool", "n", "accuracy", "lower95", "upper95", "tool_use")
    more = (*WITHIN, "by_domain", "by_level", "latency_p50_s", "latency_p95_s")
    return {name: evaluation[name] for name in (*names, *more)}


def rows_for_people(summary: Row) -> list[Row]:
    """The three held-out scores as a table: untrained, or as it started; trained; the control whose tool was forced."""
    start = first_student(summary.get("student_adapter"))
    kinds = {True: f"{start}, tool forced (control)", False: start}
    rows = []
    for test in summary["test"]:
        trained = held_out_column(test["evaluation"], test["forced_tool"]) == "heldout_last"
        rows.append(
            {
                "student": f"trained ({test['checkpoint']})" if trained else kinds[bool(test["forced_tool"])],
                "accuracy": test["accuracy"],
                "95_%": f"{test['lower95']:.3f} to {test['upper95']:.3f}",
                "tool_use": test["tool_use"],
                "n": test["n"],
                **(_within(test) if any(test["checked"] for test in summary["test"]) else {}),
            }
        )
    return rows


def failures_for_people(summary: Row) -> list[str]:
    """A line a reaction that was given up, and what a person can do about it."""
    lines = []
    for failure in summary["failures"]:
        about = failure["cause_attempt"] if failure["cause_attempt"] != "-" else failure["cause_task"]
        where = f" of {about}" if about != "-" else ""
        what = (
            f"{failure['failed_handler']} at {failure['cause_type']}{where}: {failure['error']}: {failure['message']}"
        )
        done = f"retry or drop it: agent0 failures retry {failure['failure']}"
        if failure["status"] == "dropped":
            done = f"the run went on without it ({failure['reason']})"
        lines.append(f"{failure['failure']} ({failure['status']}): {what.rstrip('.')}; {done}")
    return lines


def _within(test: Row) -> Row:
    """Of the items that can be checked: solved by one greedy attempt, and by one of the sampled ones."""
    low, high = test["lower95_within"], test["upper95_within"]
    return {
        "checkable": test["checkable"],
        "solved_at_once": test["solved_at_once"],
        "solved_within": test["solved_within"],
        "within_95_%": None if low is None else f"{low:.3f} to {high:.3f}",
        "attempts": test["checked"],
    }


def curve_columns(points: list[Row]) -> tuple[str, ...]:
    """Make the columns of the learning curve that a terminal shows."""
    within = ("solved_at_once", "solved_within") if any(point["checked"] for point in points) else ()
    cost = ("cost_usd",) if any(point["cost_usd"] is not None for point in points) else ()
    return ("iteration", "validation", *within, *cost, "tool_use", "frontier", "reward", "accepted", "attempts")
