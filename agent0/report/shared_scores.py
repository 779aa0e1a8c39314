"""Scores of a run with those that a fork has in common with its parents and did not make anew."""

import sqlite3
from typing import Any

from projections.evaluations import list_evaluations
from projections.runs import list_runs

Row = dict[str, Any]


def scores_with_shared(db: sqlite3.Connection, row: Row) -> list[Row]:
    """List what was scored in the run of ``row`` (of the table ``runs``), behind what its parents had scored before the
    fork, oldest first. An evaluation that the fork made again, as another base does, is there once, as its own."""
    own = [e for e in list_evaluations(db, row["run"]) if e["status"] == "evaluated"]
    known = {one["run"]: one for one in list_runs(db, 1_000_000)} if row["parent"] else {}
    found: list[Row] = []
    until = row["parent_seq"]
    while (parent := known.pop(row["parent"], None)) is not None:
        past = [e for e in list_evaluations(db, parent["run"]) if e["evaluated_seq"] and e["evaluated_seq"] <= until]
        found, row, until = [*past, *found], parent, min(until, parent["parent_seq"] or until)
    newest = {e["evaluation"]: e for e in [*found, *own]}
    return [e for e in [*found, *own] if newest[e["evaluation"]] is e]
