"""Checkpoints, experiments, benchmarks, budgets, alarms, settings, and what stands and works."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query

from agent0.api.conditional import LIMIT, At, Counted, Limit, Page, Tagged, counted_page
from agent0.api.context import Context
from agent0.api.problems import responses
from agent0.api.status import status
from agent0.config.loading import public
from agent0.events.budgets import BudgetScope
from agent0.projections.alarms import list_alarms
from agent0.projections.base import Row
from agent0.projections.benchmark_scores import list_benchmark_runs, show_benchmark_run
from agent0.projections.budgets import list_budgets
from agent0.projections.checkpoints import find_checkpoint, registry
from agent0.projections.evaluations import list_evaluations
from agent0.projections.experiments import list_experiments, show_experiment
from agent0.projections.model_usage import model_stats
from agent0.projections.passages import KINDS, PassageKind, search_passages
from agent0.projections.runs import resolve
from agent0.projections.training_steps import list_trainings

Name = Annotated[str, Path(max_length=200)]
Of = Annotated[str, Query(alias="run", max_length=200, description="of one run only")]
Words = Annotated[
    str,
    Query(alias="q", max_length=20_000, description='all of these words and "phrases"; a trailing *: any ending'),
]
Kind = Annotated[PassageKind | None, Query(description=f"one kind of text only: {', '.join(KINDS)}")]
CountedBy = Annotated[Literal["model", "role", "domain", "day"], Query(description="what calls are counted by")]
router = APIRouter(prefix="/v1", responses=responses())
tagged = APIRouter(dependencies=[Tagged])


@tagged.get("/checkpoints", operation_id="list_checkpoints", tags=["models"])
def checkpoints(
    context: Context,
    of: Of = "",
    role: Annotated[str, Query(max_length=40)] = "",
    status: Annotated[str, Query(max_length=40)] = "",
    limit: Limit = LIMIT,
    after: Counted = "",
    at: At = 0,
) -> Page:
    """Checkpoints of all runs and experiments, newest first; `model` is the name that every command accepts."""
    with context.tables(at) as db:
        run = resolve(db, of) if of else ""
        return counted_page(lambda n: registry(db, run, role, status, n), after, limit)


@tagged.get("/checkpoints/{run}/{checkpoint}", operation_id="show_checkpoint", tags=["models"])
def checkpoint(context: Context, run: Name, checkpoint: Name, at: At = 0) -> Row:
    """One checkpoint: what it was made of, what the steps of its `training` come to, how it was judged, and every score
    it has."""
    with context.tables(at) as db:
        row = find_checkpoint(db, f"{resolve(db, run)}/{checkpoint}")
        scores = [score for score in list_evaluations(db, row["run"]) if score["checkpoint"] == row["checkpoint"]]
        steps = list_trainings(db, row["run"], row["checkpoint"])
    return {**row, "evaluations": scores, "training": next(iter(steps), None)}


@tagged.get("/experiments", operation_id="list_experiments", tags=["experiments"])
def experiments(context: Context, of: Of = "", limit: Limit = LIMIT, after: Counted = "", at: At = 0) -> Page:
    """Experiments with what they were made of, newest first."""
    with context.tables(at) as db:
        run = resolve(db, of) if of else ""
        return counted_page(lambda n: list_experiments(db, run, n), after, limit)


@tagged.get("/experiments/{experiment}", operation_id="show_experiment", tags=["experiments"])
def experiment(context: Context, experiment: Name, at: At = 0) -> Row:
    """One experiment with everything it asked and found."""
    with context.tables(at) as db:
        return show_experiment(db, experiment)


@tagged.get("/benchmarks", operation_id="list_benchmarks", tags=["benchmarks"])
def benchmarks(context: Context, limit: Limit = LIMIT, after: Counted = "", at: At = 0) -> Page:
    """Benchmark runs with what they scored, oldest first."""
    with context.tables(at) as db:
        return counted_page(lambda n: list_benchmark_runs(db)[:n], after, limit)


@tagged.get("/benchmarks/{run}", operation_id="show_benchmark", tags=["benchmarks"])
def benchmark(context: Context, run: Name, at: At = 0) -> Row:
    """One benchmark run with its scores; LAST is the newest."""
    with context.tables(at) as db:
        return show_benchmark_run(db, run)


@tagged.get("/router/budgets", operation_id="list_budgets", tags=["router"])
def budgets(
    context: Context, scope: BudgetScope | None = None, limit: Limit = LIMIT, after: Counted = "", at: At = 0
) -> Page:
    """Budgets with their caps and what is spent, in nano-dollars."""
    with context.tables(at) as db:
        return counted_page(lambda n: list_budgets(db, scope or "", limit=n), after, limit)


@tagged.get("/router/stats", operation_id="show_router_stats", tags=["router"])
def router_stats(context: Context, by: CountedBy = "model", of: Of = "", at: At = 0) -> Page:
    """Calls of remote models by model, role, domain or day: latency, tokens, errors, and in nano-dollars what they cost
    and what the cache saved."""
    with context.tables(at) as db:
        return Page(data=model_stats(db, (by,), resolve(db, of) if of else ""))


@tagged.get("/search", operation_id="search_texts", tags=["runs"])
def search(
    context: Context,
    words: Words,
    of: Of = "",
    kind: Kind = None,
    limit: Limit = LIMIT,
    after: Counted = "",
    at: At = 0,
) -> Page:
    """Search tasks, turns, tool calls and answers of a run, or of all that lists show, best match first. The parts of a
    `snippet` that are words of the query have `match`."""
    with context.tables(at) as db:
        run, start = resolve(db, of) if of else "", int(after or 0)
        rows = search_passages(db, words, run, kind, limit + 1, start)
    return Page(data=rows[:limit], next=str(start + limit) if len(rows) > limit else None)


@tagged.get("/alarms", operation_id="list_alarms", tags=["admin"])
def alarms(context: Context, of: Of = "", limit: Limit = LIMIT, after: Counted = "", at: At = 0) -> Page:
    """Alarms that stand, those raised last before others."""
    with context.tables(at) as db:
        run = resolve(db, of) if of else ""
        return counted_page(lambda n: list_alarms(db, run, limit=n), after, limit)


@router.get("/config", operation_id="show_config", tags=["admin"])
def config(context: Context) -> Row:
    """The settings in effect in this server; secrets are masked."""
    return {**public(context.settings), "config_sha": context.settings.run.to_record()[1]}


@router.get("/status", operation_id="show_status", tags=["admin"])
async def shown(context: Context) -> Row:
    """What stands and works: log, tables and how far they are behind, a rebuild of them, processes, runs under way."""
    return {**await status(context.settings, context.log), "rebuild": context.rebuilding.said}


router.include_router(tagged)
