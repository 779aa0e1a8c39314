"""One row per iteration: the measures of its tasks and attempts before anything was trained on them."""

import sqlite3
from collections.abc import Iterator, Sequence

from agent0.events import runs as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, projection, select, stamp
from agent0.run.iteration_measures import MEANING


@projection(
    key=("run", "iteration"),
    columns={
        "run": str,
        "iteration": int,
        "student": str,
        "teacher": str,
        **dict.fromkeys(MEANING, float),
        "measured": str,
    },
    events=(facts.IterationMeasured,),
)
def iterations(e: Recorded) -> Iterator[Row]:
    """A column for each measure of ``agent0.run.iteration_measures.MEANING``; None where it could not be
    known."""
    x = e.event
    assert isinstance(x, facts.IterationMeasured)  # noqa: S101 - declared above
    measures = {name: x.measures.get(name) for name in MEANING}
    who = {"iteration": x.iteration, "student": x.student, "teacher": x.teacher}
    yield {"run": e.run, **who, **measures, "measured": stamp(e)}


def list_iterations(db: sqlite3.Connection, run: str) -> list[Row]:
    """List the measures of a run's iterations, oldest first."""
    return select(db, "SELECT * FROM iterations WHERE run = ? ORDER BY iteration", (run,))


def iteration_values(db: sqlite3.Connection, run: str, measure: str) -> list[tuple[int, str, float | None]]:
    """(iteration, when it was measured, value of ``measure``) in order. ``measure`` is a name of ``MEANING``."""
    if measure not in MEANING:
        raise ValueError(measure)
    query = f"SELECT iteration, measured, {measure} FROM iterations WHERE run = ? ORDER BY iteration"  # noqa: S608
    return db.execute(query, (run,)).fetchall()


def list_slots(db: sqlite3.Connection, run: str) -> list[Row]:
    """List what a run requested by domain, family and level: tasks, their attempts and how many were right."""
    return slots_together(slots_by_iteration(db, run))


def slots_together(cells: Sequence[Row]) -> list[Row]:
    """The rows of ``slots_by_iteration`` over all iterations: sums, and means by how many attempts each is of."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for cell in cells:
        groups.setdefault((cell["domain"], cell["family"], cell["level"]), []).append(cell)
    return [_together(arm) for _, arm in sorted(groups.items(), key=lambda item: [(k is not None, k) for k in item[0]])]


def _together(arm: Sequence[Row]) -> Row:
    sums = {name: sum(cell[name] for cell in arm) for name in ("asked", "tasks", "tried", "solved")}
    return {
        **{name: arm[0][name] for name in ("domain", "family", "level")},
        **sums,
        "solve_rate": sums["solved"] / sums["tried"] if sums["tried"] else None,
        **{name: _mean(arm, name, "tried") for name in ("turns", "calls")},
        "novelty": _mean(arm, "novelty", "weighed"),
        "last": max(cell["last"] for cell in arm),
    }


def _mean(arm: Sequence[Row], name: str, weight: str) -> float | None:
    weighted = [(cell[name], cell[weight]) for cell in arm if cell[name] is not None and cell[weight]]
    return sum(value * n for value, n in weighted) / sum(n for _, n in weighted) if weighted else None


def slots_by_iteration(db: sqlite3.Connection, run: str) -> list[Row]:
    """List what each iteration requested by domain, family and level, as ``list_slots`` does; ``weighed``: how many
    times novelty is counted, once for each attempt."""
    return select(db, _SLOTS, (run,))


_SLOTS = """
SELECT t.domain, t.family, t.level, t.iteration, count(*) AS asked, sum(t.status = 'accepted') AS tasks,
       coalesce(sum(a.tried), 0) AS tried, coalesce(sum(a.solved), 0) AS solved,
       1.0 * sum(a.solved) / sum(a.tried) AS solve_rate, 1.0 * sum(a.turns) / sum(a.tried) AS turns,
       1.0 * sum(a.calls) / sum(a.tried) AS calls,
       sum(t.novelty * coalesce(a.tried, 1))
       / sum(CASE WHEN t.novelty IS NOT NULL THEN coalesce(a.tried, 1) END) AS novelty,
       sum(CASE WHEN t.novelty IS NOT NULL THEN coalesce(a.tried, 1) END) AS weighed,
       max(t.iteration) AS last
FROM tasks t LEFT JOIN (
    SELECT task, count(*) AS tried, sum(correct) AS solved, sum(turns) AS turns, sum(tool_calls) AS calls
    FROM attempts WHERE run = ?1 AND correct IS NOT NULL GROUP BY task
) a ON a.task = t.task
WHERE t.run = ?1 GROUP BY t.domain, t.family, t.level, t.iteration
ORDER BY t.iteration, t.domain, t.family, t.level
"""
