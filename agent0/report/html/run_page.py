"""One HTML file about a run: everything inline, every text escaped, nothing fetched from anywhere."""

import json
import sqlite3
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from heapq import nlargest
from pathlib import Path

from markupsafe import Markup

from agent0.ports.storage import Artifacts
from agent0.projections.alarms import list_alarms
from agent0.projections.attempts import list_attempts
from agent0.projections.base import Row
from agent0.projections.budgets import list_budgets
from agent0.projections.checkpoints import list_checkpoints
from agent0.projections.costs import iterations_used
from agent0.projections.events import event_stats
from agent0.projections.failures import list_failures
from agent0.projections.model_usage import model_stats
from agent0.projections.rewards import reward_curve
from agent0.projections.tasks import list_tasks, patterns
from agent0.projections.tool_calls import tool_stats
from agent0.projections.training_steps import list_training_steps
from agent0.report.alarm_groups import shown_by
from agent0.report.answers import FEW
from agent0.report.charts.learning_curve import curve_svg
from agent0.report.charts.plots import Score, intervals, lines
from agent0.report.charts.training_steps import step_panels
from agent0.report.columns import model_columns, shown_iteration
from agent0.report.diagnosis.findings import Diagnosis, observation_lines, setting_lines, step_words
from agent0.report.diagnosis.replies import reply_lines
from agent0.report.findings import RunFindings, findings
from agent0.report.html.rendering import LONGEST, render
from agent0.report.html.shown_records import shown_records
from agent0.report.html.whole_run import whole_run
from agent0.report.overview import overview, rows_for_people
from agent0.report.run_benchmarks import benchmark_rows
from agent0.report.tables import Cells, confidence_rows, pass_at_k_columns
from agent0.routing.budgets import dollars
from agent0.state.run_state import first_student

ALL = -1
SCRIPT = (Path(__file__).parent / "search.js").read_text(encoding="utf-8")
"""What searches the page; it runs by its digest alone."""
SLOWEST = 8


def page(db: sqlite3.Connection, artifacts: Artifacts, run: str) -> str:
    """The report on ``run`` as HTML. The same tables and artifacts give the same bytes.

    Raises:
        NotFoundError: there is no such run.
    """
    summary = overview(db, run)
    name = summary["run"]
    tasks, attempts = list_tasks(db, name, limit=ALL), list_attempts(db, name, limit=ALL)
    results = findings(db, artifacts, name)
    return render(
        "page.html.jinja",
        run=summary,
        **_search(),
        **_costs(db, name),
        few=FEW,
        standing=summary["alarm_kinds"],
        found=results,
        scores=_test_scores(summary, results),
        benchmarks=benchmark_rows(summary["benchmarks"], first_student(summary["student_adapter"])),
        curve=curve_svg(db, name),
        curves=_curves(results, first_student(summary["student_adapter"])),
        within=_within(results),
        fared=_fared(results),
        confidence=confidence_rows(results["confidence"]),
        tests=_tests(summary["test"]),
        rewards=_rewards(reward_curve(db, name)),
        heat=_heat(tasks),
        screened=_screened(tasks),
        contaminated=sum(row["tasks"] for row in results["rejected"] if row["reason"] == "contaminated"),
        patterns=patterns(db, name),
        tools=tool_stats(db, name),
        checkpoints=list_checkpoints(db, name),
        panels=step_panels(list_training_steps(db, name)),
        failures=list_failures(db, name, status="", limit=ALL),
        events=event_stats(db, name),
        config=json.dumps(summary["config"], indent=2, ensure_ascii=False),
        **_linked(db, artifacts, summary, tasks, attempts),
    )


def _search() -> Mapping[str, object]:
    """The script that searches the page, and the digest by which a browser lets it run."""
    digest = b64encode(sha256(SCRIPT.encode()).digest()).decode()
    return {"script": Markup(SCRIPT), "script_sha": digest, "longest": LONGEST}  # noqa: S704 - a file of our own


def _costs(db: sqlite3.Connection, run: str) -> Mapping[str, object]:
    """What iterations used, what remote models took, and the budgets of the run, amounts in dollars."""
    names = ("cap", "spent", "reserved")
    budgets = [
        {"budget": f"{row['scope']} {row['name']}", **{n: None if row[n] is None else dollars(row[n]) for n in names}}
        for row in list_budgets(db, "run", run)
    ]
    models = [model_columns(row) for row in model_stats(db, ("model",), run)]
    return {"used": iterations_used(db, run), "models": models, "budgets": budgets}


def _linked(
    db: sqlite3.Connection, artifacts: Artifacts, summary: Row, tasks: Sequence[Row], attempts: Sequence[Row]
) -> Mapping[str, object]:
    """What leads to tasks, attempts and events, and these: some with everything, the others with their texts."""
    name, why = summary["run"], _why(summary["why"])
    alarms = [{**alarm, "evidence": shown_by(alarm)} for alarm in list_alarms(db, name, status="", limit=ALL)]
    slowest = nlargest(SLOWEST, (a for a in attempts if a["wall_s"] is not None), key=lambda a: a["wall_s"])
    texts = [why["conclusion"], why["step"], *why["evidence"]] if why else []
    texts += [str(alarm["evidence"]) for alarm in (*summary["alarm_kinds"], *alarms)]
    records = shown_records(db, name, _picked(attempts), [*texts, *(str(attempt["attempt"]) for attempt in slowest)])
    shown = {attempt["attempt"] for attempt in records.attempts}
    whole = whole_run(db, artifacts, name, tasks, attempts, shown)
    return {"why": why, "alarms": alarms, "slowest": slowest, "records": records, "whole": whole, "link": records.link}


def _why(diagnosis: Diagnosis) -> Row | None:
    """The diagnosis in words; None where nothing went badly."""
    if diagnosis["well"]:
        return None
    return {
        **diagnosis,
        "step": step_words(diagnosis["step"]),
        "evidence": observation_lines(diagnosis["evidence"]),
        "replies": reply_lines(diagnosis["replies"]),
        "settings": setting_lines(diagnosis["settings"]),
    }


def _curves(results: RunFindings, start: str) -> list[tuple[str, Markup]]:
    ticks = [shown_iteration(score["iteration"], start) for score in results["iterations"]]
    drawn = [
        (part, lines(results["curves"][f"by_{part}"], ticks, f"accuracy by {part} and iteration"))
        for part in ("domain", "level")
    ]
    return [(part, picture) for part, picture in drawn if picture and len(ticks) > 1]


def _within(results: RunFindings) -> list[Cells]:
    """Every score with checked attempts, on validation and test."""
    return [
        {"set": name, "student": score["checkpoint"] + (", tool forced" if score["forced_tool"] else "")}
        | pass_at_k_columns(score)
        for name, scores in (("validation", results["iterations"]), ("test", results["test"]))
        for score in scores
        if score["checked"]
    ]


def _fared(results: RunFindings) -> Markup:
    rows = results["tools"]["with_and_without"]
    scores = {
        f"{row['tools']} ({row['attempts']:,})": [Score("right", row["correct"], row["lower95"], row["upper95"])]
        for row in rows
    }
    return intervals(scores, "share of attempts that are right, by the tools that went well")


def _test_scores(summary: Row, results: RunFindings) -> list[Row]:
    """The scores on the test set, each with how the last compares ``against`` it."""
    against = {score["evaluation"]: score["last_against_this"] for score in results["test"]}
    named = zip(rows_for_people(summary), summary["test"], strict=True)
    return [{**row, "against": against.get(test["evaluation"])} for row, test in named]


def _tests(tests: Sequence[Row]) -> list[Row]:
    """Groups of bars: one for each domain and level, with a bar for each evaluation on the test set."""
    free = [test["evaluation"] for test in tests if not test["forced_tool"]]
    kinds = [
        "forced" if test["forced_tool"] else "first" if test["evaluation"] == free[0] else "last" for test in tests
    ]
    groups = []
    for title, part in (("", "by_domain"), ("level ", "by_level")):
        for key in sorted({key for test in tests for key in test[part] or {}}):
            values = [(test[part] or {}).get(key) for test in tests]
            bars = [{"kind": kind, "value": value} for kind, value in zip(kinds, values, strict=True)]
            groups.append({"name": f"{title}{key}", "bars": bars})
    return groups


def _rewards(points: Sequence[Row]) -> list[Row]:
    """A table for each role and reward set: parts by iteration."""
    by_role: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for point in points:
        by_role[point["role"], point["reward_set"]].append(point)
    return [
        {
            "role": role,
            "set": name,
            "parts": sorted({part for p in points_of_set for part in p["parts"]}),
            "points": points_of_set,
        }
        for (role, name), points_of_set in sorted(by_role.items())
    ]


def _heat(tasks: Iterable[Row]) -> Mapping[str, object]:
    """Mean solve rate and number of closed tasks by domain, family and level."""
    cells: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for task in tasks:
        if task["solve_rate"] is not None:
            cells[task["domain"], task["family"], task["level"]].append(task["solve_rate"])
    levels = sorted({level for _, _, level in cells})
    rows = []
    for domain, family in sorted({(domain, family) for domain, family, _ in cells}):
        rates_by_level = [cells.get((domain, family, level), []) for level in levels]
        rates = [{"n": len(rates), "rate": sum(rates) / len(rates) if rates else None} for rates in rates_by_level]
        rows.append({"domain": domain, "family": family, "cells": rates})
    return {"levels": levels, "rows": rows}


def _screened(tasks: Iterable[Row]) -> list[tuple[str, int]]:
    """What became of the teacher's proposals."""
    fates = Counter(f"{t['status']}: {t['reason']}" if t["reason"] else t["status"] for t in tasks)
    return sorted(fates.items(), key=lambda fate: (-fate[1], fate[0]))


def _picked(attempts: Sequence[Row]) -> list[str]:
    """Attempts worth reading: of the first and the last iteration, right and wrong, with a tool and without."""
    ends = sorted({a["iteration"] for a in attempts})
    picks: dict[tuple[int, bool, bool], str] = {}
    for attempt in attempts:
        if attempt["iteration"] in (*ends[:1], *ends[-1:]) and attempt["correct"] is not None:
            kind = (attempt["iteration"], bool(attempt["correct"]), bool(attempt["tool_ok"]))
            picks.setdefault(kind, attempt["attempt"])
    return [picks[kind] for kind in sorted(picks)]
