"""How varied the tasks of a run and the solutions to them are."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from agent0.projections.base import Row
from agent0.projections.tasks import patterns
from agent0.projections.traces import list_traces
from agent0.rollout.solution_diversity import Variety, signature, variety
from agent0.rollout.tool_patterns import Call, Trace, used

FREQUENT = 12
"""Transitions and patterns that are told."""


def solutions_of(db: sqlite3.Connection, run: str) -> Variety:
    """Measure how varied the solutions of ``run`` are."""
    solved = _solved(list_traces(db, run))
    return variety([pattern for pattern, _ in solved.values()])


def _solved(traces: Sequence[Row]) -> dict[str, tuple[str, Row]]:
    """Task -> pattern of the first right attempt at it, and the attempt."""
    solved: dict[str, tuple[str, Row]] = {}
    for row in traces:
        if row["correct"] and row["task"] not in solved:
            calls = trace_of(row).calls
            solved[row["task"]] = signature(calls, f"{row['domain']}/{row['family']}"), row
    return solved


def diversity(db: sqlite3.Connection, run: str, traces: Sequence[Row]) -> Row:
    """Patterns of the first right attempt at each task, over the run and by iteration."""
    solved, by_iteration = _solved(traces), defaultdict[int, list[str]](list)
    for pattern, row in solved.values():
        by_iteration[row["iteration"]].append(pattern)
    return {
        "forms": patterns(db, run),
        "solutions": asdict(variety([pattern for pattern, _ in solved.values()])),
        "by_iteration": [
            {"iteration": number, **asdict(variety(signatures))} for number, signatures in sorted(by_iteration.items())
        ],
        "frequent": _frequent(solved),
    }


def _frequent(solved: Mapping[str, tuple[str, Row]]) -> list[Row]:
    """The patterns that solve most tasks, each with an attempt to look at."""
    times = Counter(pattern for pattern, _ in solved.values())
    example: dict[str, Row] = {}
    for pattern, row in solved.values():
        example.setdefault(pattern, row)
    return [
        {"tasks": n, "tools": used(trace_of(example[p]).calls), "attempt": example[p]["attempt"], "pattern": p[:300]}
        for p, n in sorted(times.items(), key=lambda item: (-item[1], item[0]))[:FREQUENT]
    ]


def trace_of(row: Row) -> Trace:
    """An attempt with its tool calls, from a row of ``list_traces``."""
    return Trace(row["attempt"], row["task"], row["correct"], tuple(Call(*call) for call in row["calls"]))
