"""Runs, their tasks and trajectories, now or at any past event."""

import sqlite3
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import JsonValue

from agent0.api.conditional import LIMIT, After, At, Counted, Limit, Page, Tagged, counted_page, keyed_page
from agent0.api.context import ApiContext, Context
from agent0.api.problems import responses
from agent0.assembly.api.trajectories import transcript_of
from agent0.assembly.log.carriers import carried
from agent0.assembly.requests.run_filters import STATUSES, require_status
from agent0.assembly.tracking.measured import measured
from agent0.assembly.validate.question_ledger import question_ledger
from agent0.projections.attempts import list_attempts, show_attempt
from agent0.projections.base import Row
from agent0.projections.evaluation_items import evaluated_run, list_items
from agent0.projections.evaluations import curve_with_shared
from agent0.projections.events import story
from agent0.projections.rewards import explain_rewards
from agent0.projections.runs import RunFilter, list_runs, resolve
from agent0.projections.tasks import list_tasks, show_task
from agent0.report.overview import overview
from agent0.settings import LARGEST

router = APIRouter(prefix="/v1/runs", tags=["runs"], responses=responses(), dependencies=[Tagged])
Run = Annotated[str, Path(max_length=200, description="id, unique beginning of it, name, LAST or LAST~1")]
KNOWN: dict[str, JsonValue] = {"enum": ["", *sorted(STATUSES)]}
Hidden = Annotated[bool, Query(description="hidden and deleted runs, too")]
Iteration = Annotated[int | None, Query(ge=0, le=LARGEST, description="one iteration only; the first is 0")]


def run_filter(
    tag: Annotated[str, Query(max_length=100, description="runs that have this tag")] = "",
    profile: Annotated[str, Query(max_length=255, description="runs of this profile")] = "",
    status: Annotated[str, Query(description="runs that stand so", json_schema_extra=KNOWN)] = "",
    text: Annotated[str, Query(max_length=200, description="part of id, name, tag or note")] = "",
) -> RunFilter:
    """Make the filter of a list of runs from its query.

    Raises:
        ConfigError: no run can have that status.
    """
    require_status(status)
    return RunFilter(tag, profile, status, text)


Chosen = Annotated[RunFilter, Depends(run_filter)]


@router.get("", operation_id="list_runs")
def runs(
    context: Context, chosen: Chosen, limit: Limit = LIMIT, after: After = "", hidden: Hidden = False, at: At = 0
) -> Page:
    """Runs, newest first; `carried` says whether a process executes a running one."""
    with context.tables(at) as db:
        rows = list_runs(db, limit + 1, after, hidden, chosen)
    return keyed_page(carried(context.settings, rows), limit, "run")


@router.get("/{run}", operation_id="show_run")
def run(context: Context, run: Run, at: At = 0) -> Row:
    """What a run came to: counts, learning curve (`validation`), test scores, targets, alarms, `why` it went badly."""
    with context.tables(at) as db:
        name = resolve(db, run)
    deep = context.deep.wait(name, at)
    with context.tables(at) as db:
        return overview(db, name, deep=deep.parts)


@router.get("/{run}/why", operation_id="explain_run")
def why(context: Context, run: Run, at: At = 0) -> Row:
    """Why a run went badly: the cause, the first bad step, what shows it, and what mends it."""
    with context.tables(at) as db:
        name = resolve(db, run)
    return {**context.deep.wait(name, at).parts["why"]}


@router.get("/{run}/curve", operation_id="show_curve")
def curve(context: Context, run: Run, at: At = 0) -> Page:
    """The learning curve: a row an iteration, -1 being the untrained student."""
    with context.tables(at) as db:
        return Page(data=curve_with_shared(db, resolve(db, run)))


@router.get("/{run}/metrics", operation_id="show_metrics")
def metrics(context: Context, run: Run, at: At = 0) -> Page:
    """Everything that was measured: a row for each iteration done (`step` 0: untrained), then one for each step of the
    optimiser, whose series are `training/…`; every row has every series, null where it has no value."""
    with context.tables(at) as db:
        return Page(data=[*measured(db, resolve(db, run)).all_rows()])


@router.get("/{run}/ledger", operation_id="show_ledger")
def ledger(context: Context, run: Run, limit: Limit = LIMIT, after: Counted = "", at: At = 0) -> Page:
    """How often a run asked each row of its file of questions, and how many attempts at it were right."""
    with context.tables(at) as db:
        rows = question_ledger(db, resolve(db, run)).rows
    return counted_page(lambda n: rows[:n], after, limit)


@router.get("/{run}/story", operation_id="tell_story")
def chain(context: Context, run: Run, at: At = 0) -> Page:
    """The chain of causes from a run's start over a trained checkpoint to its end."""
    with context.tables(at) as db:
        return Page(data=story(db, resolve(db, run)))


@router.get("/{run}/tasks", operation_id="list_tasks")
def tasks(
    context: Context,
    run: Run,
    iteration: Iteration = None,
    status: Annotated[str, Query(max_length=40)] = "",
    domain: Annotated[str, Query(max_length=80)] = "",
    limit: Limit = LIMIT,
    after: After = "",
    at: At = 0,
) -> Page:
    """Tasks in the order they were asked for, with what became of them."""
    with context.tables(at) as db:
        rows = list_tasks(db, resolve(db, run), iteration, status, domain, limit + 1, after)
    return keyed_page(rows, limit, "task")


@router.get("/{run}/tasks/{task}", operation_id="show_task")
def task(context: Context, run: Run, task: Annotated[str, Path(max_length=80)], at: At = 0) -> Row:
    """One task with its attempts, the teacher's receipts and its reviews."""
    with context.tables(at) as db:
        name = resolve(db, run)
        return {**show_task(db, name, task), "receipts": explain_rewards(db, name, task)}


@router.get("/{run}/trajectories", operation_id="list_trajectories")
def trajectories(
    context: Context,
    run: Run,
    task: Annotated[str, Query(max_length=80)] = "",
    iteration: Iteration = None,
    correct: bool | None = None,
    evaluation: Annotated[
        str, Query(max_length=80, description="its items instead: an id, split, checkpoint or benchmark")
    ] = "",
    limit: Limit = LIMIT,
    after: After = "",
    at: At = 0,
) -> Page:
    """Attempts in the order they were asked for, or the items of an evaluation, which are of no task."""
    with context.tables(at) as db:
        if evaluation:
            rows = list_items(db, evaluated_run(db, run), evaluation, correct, limit + 1, after)
        else:
            rows = list_attempts(db, resolve(db, run), task, iteration, correct, limit + 1, after)
    return keyed_page(rows, limit, "attempt")


@router.get("/{run}/trajectories/{attempt}", operation_id="show_trajectory")
def trajectory(context: Context, run: Run, attempt: Annotated[str, Path(max_length=80)], at: At = 0) -> Row:
    """One attempt, or one item of an evaluation, with transcript, tool calls, verdicts and receipts."""
    with context.tables(at) as db:
        return whole_attempt(context, db, evaluated_run(db, run), attempt)


def whole_attempt(context: ApiContext, db: sqlite3.Connection, run: str, attempt: str, *, calls: bool = True) -> Row:
    """Everything of an attempt, as `agent0 trajectory show --json` prints it. ``calls`` False: no tool calls.

    Raises:
        NotFoundError: there is none, or its transcript is gone.
    """
    shown = show_attempt(db, run, attempt, calls=calls)
    shown["receipts"] = explain_rewards(db, run, attempt=attempt)
    shown["transcript"] = transcript_of(context.settings, shown)
    return shown
