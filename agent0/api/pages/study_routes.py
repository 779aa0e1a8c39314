"""The pages beside single runs: comparisons, curriculum, rewards, calibration, benchmarks, experiments, router."""

import json
import secrets
import sqlite3
from typing import Annotated

from fastapi import Query

from agent0.api.conditional import LIMIT, At, Limit
from agent0.api.context import Context
from agent0.api.pages import readings
from agent0.api.pages.drawing import curves, heatmap, reliability
from agent0.api.pages.readings import plan_of, shown_amounts
from agent0.api.pages.rendering import Shown, linker, twin
from agent0.api.pages.routes import known_profiles
from agent0.projections.attempts import list_attempts
from agent0.projections.base import Row
from agent0.projections.benchmark_scores import list_benchmark_runs
from agent0.projections.budgets import list_budgets, list_entries
from agent0.projections.calibrators import list_calibrators
from agent0.projections.events import newest_events
from agent0.projections.experiments import list_experiments, show_experiment
from agent0.projections.iterations import list_iterations, slots_by_iteration, slots_together
from agent0.projections.model_usage import stats_by_each
from agent0.projections.rewards import explain_rewards, reward_curve
from agent0.projections.runs import list_runs, resolve, show_run
from agent0.projections.tasks import rows_asked
from agent0.report.benchmark_findings import bench_findings
from agent0.report.columns import model_columns
from agent0.rewards.describe import explain_receipt
from agent0.routing.budgets import dollars
from agent0.tasks.curriculum.difficulty import grade

ROWS = 100
"""Rows of a file of questions that a page lists; the API has all."""
Name = Annotated[str, Query(max_length=200)]
Question = Annotated[str, Query(max_length=2000, description="what the form begins with")]


@twin("/runs/{run}/curriculum", "curriculum.html.jinja")
def curriculum(context: Context, run: str, at: At = 0) -> Shown:
    """What was asked for, how hard it was, how broad it stayed."""
    with context.tables() as live, context.tables(at) as db:
        data, moments = curriculum_data(db, run), readings.moments(live, run)
        counts = rows_asked(db, data["run"])
    view = {"heat": heatmap(data["cells"]), "moments": moments, "row_counts": counts[:ROWS], "rows": len(counts)}
    return Shown(data, at, view)


@twin("/runs/{run}/rewards", "rewards.html.jinja")
def rewards(context: Context, run: str, of: Name = "", at: At = 0) -> Shown:
    """What was rewarded, beside what was verified; one receipt explained."""
    with context.tables() as live, context.tables(at) as db:
        data, moments = rewards_data(db, run, of), readings.moments(live, run)
    lines = curves([[{**row, "validation": row[key]} for row in data["truth"]] for key in PROXY])
    return Shown(data, at, {"lines": lines, "moments": moments, "link": linker(data["run"], at), "measures": PROXY})


@twin("/calibration", "calibration.html.jinja")
def calibration(context: Context, limit: Limit = 20, at: At = 0) -> Shown:
    """What confidence is worth: reliability before and after, the newest measurement first."""
    with context.tables(at) as db:
        rows = list_calibrators(db, limit=limit)
    return Shown({"calibrators": rows}, at, {"pictures": [reliability(row["reliability"] or ()) for row in rows]})


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
        return Shown(router_data(db, scope, name), at)


SHOWN = 50
"""Items, decisions, entries of one table."""
PROXY = ("student_reward", "solve_rate", "label_accuracy", "validation")
"""What is optimised, and three measures of what is meant by it."""


def curriculum_data(db: sqlite3.Connection, run: str) -> Row:
    """Families and levels with their difficulty for this student, and each iteration in numbers."""
    name = resolve(db, run)
    band = plan_of(show_run(db, name)).curriculum.band
    arms, cells = [], slots_by_iteration(db, name)
    for arm in slots_together(cells):
        graded = grade(int(arm["solved"]), arm["tried"], band, arm["turns"], arm["calls"])
        arms.append({**arm, "grade": graded.grade, "lower95": graded.lower95, "upper95": graded.upper95})
    iterations = [{**row, "tasks": int(row["tasks"] or 0)} for row in list_iterations(db, name)]
    return {"run": name, "arms": arms, "cells": cells, "iterations": iterations}


def rewards_data(db: sqlite3.Connection, run: str, of: str) -> Row:
    """Rewards by iteration and part, what is rewarded beside what was verified, and the receipt of the task or attempt
    ``of``, part by part."""
    name = resolve(db, run)
    measures = [
        {"iteration": iteration["iteration"], **{key: iteration[key] for key in PROXY}}
        for iteration in list_iterations(db, name)
    ]
    attempt = of if "-a" in of else ""
    receipts = explain_rewards(db, name, attempt=attempt, task="" if attempt else of) if of else []
    examples = [attempt["attempt"] for attempt in list_attempts(db, name, limit=8)]
    return {
        "run": name,
        "of": of,
        "curve": reward_curve(db, name),
        "truth": measures,
        "receipts": [explain_receipt(receipt) for receipt in receipts],
        "examples": examples,
    }


def router_data(db: sqlite3.Connection, scope: str, name: str) -> Row:
    """Budgets, the invoice of one, calls by model, role, domain and day, and the newest decisions and calls. Amounts in
    nano-dollars."""
    entries = list_entries(db, scope, name, SHOWN) if scope and name else []
    return {
        "budgets": [{**row, "shown": shown_amounts(row)} for row in list_budgets(db, limit=SHOWN)],
        "entries": [{**row, "shown": dollars(row["amount"] or 0)} for row in entries],
        "of": f"{scope} {name}".strip(),
        "stats": {
            by: [{"by": row[by], **model_columns(row)} for row in rows[:SHOWN]]
            for by, rows in stats_by_each(db).items()
        },
        "decisions": [_decided(*event) for event in reversed(newest_events(db, type="CallRouted", limit=SHOWN))],
        "calls": [_called(*event) for event in reversed(newest_events(db, type="ModelCalled", limit=SHOWN))],
    }


def _decided(seq: int, body: bytes) -> Row:
    event = json.loads(body)
    data = event["data"]
    why = "; ".join(step["reason"] for step in data["steps"] if step["reason"])
    fields = {key: data[key] for key in ("route", "role", "strategy", "chosen")}
    return {"event": f"event {seq}", "seq": seq, "run": event["run"], **fields, "why": why}


def _called(seq: int, body: bytes) -> Row:
    event = json.loads(body)
    data = event["data"]
    cost = data.get("cost")
    fields = {key: data.get(key) for key in ("provider", "model", "role", "finish", "cache", "route")}
    price = dollars(cost) if isinstance(cost, int) else None
    return {"event": f"event {seq}", "seq": seq, "run": event["run"], **fields, "cost": price}
