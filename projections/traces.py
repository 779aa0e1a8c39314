"""Attempts with their tool calls in order, as analyses of mistakes, tool use and diversity read them. No table of its
own: it joins those of tasks, attempts, verdicts and tool calls."""

import json
import sqlite3
from collections import defaultdict

from agent0.projections.base import Row, each, select


def list_traces(db: sqlite3.Connection, run: str) -> list[Row]:
    """Ended attempts of a run in the order they were asked for. ``calls`` are (tool, state, arguments) in order,
    ``expected`` and ``reason`` are what a verifier said."""
    calls = _calls(db, run)
    rows = select(
        db,
        "SELECT attempt, task, attempts.iteration, number, correct, answer, end, domain, family, level,"
        " first.expected, first.reason, mean_logprob, self_critique FROM attempts LEFT JOIN tasks USING (run, task)"
        " LEFT JOIN (SELECT run, attempt, expected, reason, min(verifier) FROM verdicts WHERE run = ?1"
        " GROUP BY run, attempt) AS first USING (run, attempt)"
        " WHERE attempts.run = ?1 AND end IS NOT NULL"
        " ORDER BY attempts.iteration, task, number",
        (run,),
    )
    return [{**row, "correct": _truth(row["correct"]), "calls": calls.get(row["attempt"], [])} for row in rows]


def _calls(db: sqlite3.Connection, run: str) -> dict[str, list[tuple[str, str, Row]]]:
    """Steps inside a plan are the plan's."""
    sql = "SELECT attempt, tool, state, arguments FROM tool_calls WHERE run = ? AND NOT inner ORDER BY attempt, number"
    by_attempt: dict[str, list[tuple[str, str, Row]]] = defaultdict(list)
    for row in each(db, sql, (run,)):
        by_attempt[row["attempt"]].append((row["tool"], row["state"], json.loads(row["arguments"])))
    return by_attempt


def _truth(stored: int | None) -> bool | None:
    return None if stored is None else bool(stored)
