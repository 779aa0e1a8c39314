"""How varied the tasks of a run and the solutions to them are."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from agent0.projections.tasks import patterns
from agent0.projections.traces import list_traces
from agent0.rollout.solution_diversity import signature, variety
from agent0.rollout.tool_patterns import Call, Trace, used

Row = dict[str, Any]

FREQUENT = 12
"""Transitions and patterns that are told."""


def solutions_of(db: sqlite3.Connection, run: str) -> Row:
    """How varied the solutions of ``run`` are: solved ``tasks``, different ``patterns`` and these ``per_1000``."""
    solutions: Row = diversity(db, run, list_traces(db, run))["solutions"]
    return solutions


def diversity(db: sqlite3.Connection, run: str, traces: Sequence[Row]) -> Row:
    """Patterns of the first right attempt at each task, over the run and by iteration."""
    solved: dict[str, tuple[int, str, Row]] = {}
    for row in traces:
        if row["correct"] and row["task"] not in solved:
            pattern = signature(trace_of(row).calls, f"{row['domain']}/{row['family']}")
            solved[row["task"]] = (row["iteration"], pattern, row)
    by_iteration: dict[int, list[str]] = defaultdict(list)
    for iteration, pattern, _ in solved.values():
        by_iteration[iteration].append(pattern)
    return {
        "forms": patterns(db, run),
        "solutions": asdict(variety([pattern for _, pattern, _ in solved.values()])),
        "by_iteration": [
            {"iteration": iteration, **asdict(variety(solved))} for iteration, solved in sorted(by_iteration.items())
        ],
        "frequent": _frequent(solved),
    }


def _frequent(solved: Mapping[str, tuple[int, str, Row]]) -> list[Row]:
    """The patterns that solve most tasks, each with an attempt to look at."""
    times = Counter(pattern for _, pattern, _ in solved.values())
    example: dict[str, Row] = {}
    for _, pattern, row in solved.values():
        example.setdefault(pattern, row)
    return [
        {"tasks": n, "tools": used(trace_of(example[p]).calls), "attempt": example[p]["attempt"], "pattern": p[:300]}
        for p, n in sorted(times.items(), key=lambda item: (-item[1], item[0]))[:FREQUENT]
    ]


def trace_of(row: Row) -> Trace:
    """An attempt with its tool calls, from a row of ``list_traces``."""
    return Trace(row["attempt"], row["task"], row["correct"], tuple(Call(*call) for call in row["calls"]))
