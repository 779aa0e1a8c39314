"""The runs of benchmarks."""

import json

from agent0.cli import console, lookup
from agent0.projections.benchmark_scores import list_benchmark_runs


def runs(as_json: console.Json = False) -> None:
    """Benchmark runs, the latest last: what they score, how far they came, and the ids that other commands take."""
    with lookup.tables() as db:
        rows = [{**row, "benchmarks": json.loads(row["benchmarks"] or "[]")} for row in list_benchmark_runs(db)]
    if not as_json:
        rows = [{**row, "benchmarks": ", ".join(row["benchmarks"])} for row in rows]
    console.table(rows, as_json, ("run", "status", "provider", "checkpoint", "benchmarks", "samples", "time"))
