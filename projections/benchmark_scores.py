"""One row per benchmark and mode of a benchmark run: its score with its interval; a row without a mode is the run."""

import sqlite3
from collections.abc import Iterator

from agent0.errors import NotFoundError
from agent0.events import benchmarks as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, as_json, projection, select, stamp


@projection(
    key=("run", "benchmark", "mode"),
    columns={
        "run": str,
        "benchmark": str,
        "mode": str,
        "status": str,
        "checkpoint": str,
        "n": int,
        "samples": int,
        "correct": int,
        "undecided": int,
        "truncated": int,
        "accuracy": float,
        "lower95": float,
        "upper95": float,
        "pass_at": str,
        "metrics": str,
        "settings": str,
        "results": str,
        "wall_s": float,
        "time": str,
    },
    events=(facts.BenchmarkStarted, facts.BenchmarkScored, facts.BenchmarkFinished),
)
def benchmark_scores(e: Recorded) -> Iterator[Row]:
    """``status`` of the run's row: started, finished. ``results`` is the digest of its results file."""
    run = {"run": e.run, "benchmark": "", "mode": ""}
    match e.event:
        case facts.BenchmarkStarted() as x:
            settings = as_json(x.model_dump(mode="json"))
            request = {"checkpoint": x.checkpoint, "samples": x.samples, "settings": settings}
            yield {**run, **request, "status": "started", "time": stamp(e)}
        case facts.BenchmarkScored() as x:
            fields = x.model_dump(exclude={"pass_at", "metrics"})
            yield {
                **fields,
                "run": e.run,
                "pass_at": as_json(x.pass_at),
                "metrics": as_json(x.metrics),
                "time": stamp(e),
            }
        case facts.BenchmarkFinished() as x:
            yield {**run, "status": "finished", "results": x.results.sha256}


def list_benchmark_runs(db: sqlite3.Connection) -> list[Row]:
    """List all benchmark runs in order, the latest last."""
    return select(
        db,
        "SELECT run, status, checkpoint, samples, json_extract(settings, '$.benchmarks') AS benchmarks,"
        " json_extract(settings, '$.actor.provider') AS provider, time FROM benchmark_scores WHERE benchmark = ''"
        " ORDER BY time, run",
        (),
    )


def show_benchmark_run(db: sqlite3.Connection, run: str) -> Row:
    """One benchmark run as it was requested, ``settings`` parsed; ``LAST`` is the newest.

    Raises:
        NotFoundError: there is no such run.
    """
    rows = select(
        db,
        "SELECT run, status, checkpoint, samples, settings, results, time FROM benchmark_scores WHERE benchmark = ''"
        " AND settings IS NOT NULL AND (run = ? OR ? = 'LAST') ORDER BY time DESC, run DESC LIMIT 1",
        (run, run),
        parse=("settings",),
    )
    if not rows:
        what = "There is no benchmark run yet." if run == "LAST" else f"There is no benchmark run {run[:80]!r}."
        raise NotFoundError(what, fix="Make one: agent0 bench run all --data FOLDER")
    return rows[0]
