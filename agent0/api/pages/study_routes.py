"""The pages beside single runs: comparisons, curriculum, rewards, calibration, benchmarks, experiments, router."""

import json
import secrets
from typing import Annotated

from fastapi import Query

from agent0.api.conditional import LIMIT, At, Limit
from agent0.api.context import Context
from agent0.api.pages import readings, studies
from agent0.api.pages.drawing import curves, heatmap, reliability
from agent0.api.pages.rendering import linker
from agent0.api.pages.routes import known_profiles
from agent0.api.pages.twins import Shown, twin
from agent0.projections.benchmark_scores import list_benchmark_runs
from agent0.projections.checkpoints import registry
from agent0.projections.experiments import list_experiments, show_experiment
from agent0.projections.runs import list_runs
from agent0.report.benchmark_findings import bench_findings

Name = Annotated[str, Query(max_length=200)]
Question = Annotated[str, Query(max_length=2000, description="what the form begins with")]


@twin("/compare", "compare.html.jinja")
def compare(context: Context, left: Name = "", right: Name = "", question: Question = "", at: At = 0) -> Shown:
    """Two runs, two checkpoints or two attempts side by side; a form that asks which where neither is named."""
    with context.tables(at) as db:
        names = [row["run"] for row in list_runs(db, LIMIT)]
        models = [row["model"] for row in registry(db, role="student", limit=LIMIT)]
        comparison = studies.compare_data(context, db, left, right) if left and right else {"kind": ""}
    lines = curves([[*rows] for rows in comparison["curves"]]) if comparison["kind"] == "runs" else None
    again = secrets.token_urlsafe(16) if context.log and not at else ""
    more = {"names": [*names, *models], "lines": lines, "asked": (left, right)}
    return Shown(comparison, at, {**more, "question": question, "again": again})


@twin("/runs/{run}/curriculum", "curriculum.html.jinja")
def curriculum(context: Context, run: str, at: At = 0) -> Shown:
    """What was asked for, how hard it was, how broad it stayed."""
    with context.tables() as live, context.tables(at) as db:
        data, moments = studies.curriculum_data(db, run), readings.moments(live, run)
    return Shown(data, at, {"heat": heatmap(data["cells"]), "moments": moments})


@twin("/runs/{run}/rewards", "rewards.html.jinja")
def rewards(context: Context, run: str, of: Name = "", at: At = 0) -> Shown:
    """What was rewarded, beside what was verified; one receipt explained."""
    with context.tables() as live, context.tables(at) as db:
        data, moments = studies.rewards_data(db, run, of), readings.moments(live, run)
    lines = curves([[{**row, "validation": row[key]} for row in data["truth"]] for key in studies.PROXY])
    return Shown(
        data, at, {"lines": lines, "moments": moments, "link": linker(data["run"], at), "measures": studies.PROXY}
    )


@twin("/calibration", "calibration.html.jinja")
def calibration(context: Context, limit: Limit = 20, at: At = 0) -> Shown:
    """What confidence is worth: reliability before and after."""
    with context.tables(at) as db:
        data = studies.calibration_data(db, limit)
    return Shown(
        data, at, {"pictures": [reliability(calibrator["reliability"] or ()) for calibrator in data["calibrators"]]}
    )


@twin("/benchmarks", "benchmarks.html.jinja")
def benchmarks(context: Context, at: At = 0) -> Shown:
    """Show benchmark runs and what they score, the latest first."""
    with context.tables(at) as db:
        rows = list_benchmark_runs(db)[::-1]
    return Shown({"runs": [{**row, "benchmarks": json.loads(row["benchmarks"] or "[]")} for row in rows]}, at)


@twin("/benchmarks/{run}", "benchmark.html.jinja")
def benchmark(context: Context, run: str, at: At = 0) -> Shown:
    """One benchmark run: scores with their intervals, with tools beside without, where it fails."""
    with context.tables(at) as db:
        return Shown({"found": bench_findings(db, context.artifacts, run, {})}, at)


@twin("/experiments", "experiments.html.jinja")
def experiments(context: Context, limit: Limit = LIMIT, run: Name = "", at: At = 0) -> Shown:
    """Experiments, newest first, and forms that start some, of ``run`` where it is named."""
    with context.tables(at) as db:
        rows, names = list_experiments(db, limit=limit), [row["run"] for row in list_runs(db, LIMIT)]
    more = {"names": names if context.log else [], "again": secrets.token_urlsafe(16), "of": run}
    return Shown(
        {"experiments": rows}, at, {**more, "profiles": known_profiles(context), "profile": context.settings.profile}
    )


@twin("/experiments/{experiment}", "experiment.html.jinja")
def experiment(context: Context, experiment: str, at: At = 0) -> Shown:
    """One experiment: what it asked, under which rules, what it found."""
    with context.tables(at) as db:
        return Shown({"found": show_experiment(db, experiment)}, at)


@twin("/router", "router.html.jinja")
def router_page(context: Context, scope: Name = "", name: Name = "", at: At = 0) -> Shown:
    """Budgets and their entries, decisions of strategies, and calls of models that cost something."""
    with context.tables(at) as db:
        return Shown(studies.router_data(db, scope, name), at)
