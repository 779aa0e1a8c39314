"""What a running run has asked for and does not have yet, from the tables."""

import sqlite3

from agent0.projections.base import Row, select

_OPEN = """
SELECT 'the training of ' || checkpoint AS what, requested AS since, NULL AS left FROM checkpoints
WHERE run = ?1 AND status = 'requested'
UNION ALL
SELECT 'items of ' || evaluation, requested, nullif(max(n - coalesce(scored, 0), 0), 0) FROM evaluations
WHERE run = ?1 AND status = 'requested'
UNION ALL
SELECT 'attempts', min(requested), count(*) FROM attempts
WHERE run = ?1 AND status IN ('requested', 'working', 'attempted') HAVING count(*)
UNION ALL
SELECT 'tasks', min(requested), count(*) FROM tasks WHERE run = ?1 AND status IN ('requested', 'proposed')
HAVING count(*)
"""


def open_work(db: sqlite3.Connection, run: str) -> tuple[str, ...]:
    """Trainings, evaluations, attempts and tasks that ``run`` waits for, in words, with the time of day since when."""
    return tuple(map(_description, select(db, _OPEN, (run,))))


def _description(row: Row) -> str:
    count = f"{row['left']:,} " if row["left"] else ""
    return f"{count}{row['what']} (since {str(row['since'])[11:19]} UTC)"
