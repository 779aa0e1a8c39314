"""One row per held-out evaluation: accuracy with its interval, pass@k (verifier-selected), tool use, latency."""

import sqlite3
from collections.abc import Iterator

from agent0.events import checkpoints as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, as_json, projection, select, stamp
from agent0.projections.runs import lineage, parent_of

_COPIED = {
    "evaluation", "checkpoint", "iteration", "split", "forced_tool", "n", "correct", "accuracy", "lower95", "upper95",
    "tool_use", "undecided", "truncated", "latency_p50_s", "latency_p95_s", "outcomes", "wall_s", "checked",
    "checkable", "solved_at_once", "solved_within", "lower95_within", "upper95_within", "outcomes_within",
    "attempts_within", "benchmark",
}  # fmt: skip


@projection(
    key=("run", "evaluation"),
    columns={
        "run": str,
        "evaluation": str,
        "checkpoint": str,
        "iteration": int,
        "split": str,
        "forced_tool": bool,
        "status": str,
        "n": int,
        "scored": int,
        "correct": int,
        "accuracy": float,
        "lower95": float,
        "upper95": float,
        "tool_use": float,
        "undecided": int,
        "truncated": int,
        "by_domain": str,
        "by_level": str,
        "latency_p50_s": float,
        "latency_p95_s": float,
        "outcomes": str,
        "checked": int,
        "checkable": int,
        "solved_at_once": float,
        "solved_within": float,
        "lower95_within": float,
        "upper95_within": float,
        "outcomes_within": str,
        "attempts_within": int,
        "items": str,
        "wall_s": float,
        "benchmark": str,
        "requested": str,
        "evaluated": str,
        "evaluated_seq": int,
    },
    events=(facts.EvaluationRequested, facts.EvaluationItemScored, facts.CheckpointEvaluated),
    adds=("scored",),
    indexes=(("run", "split", "forced_tool", "status", "iteration", "evaluated", "accuracy"),),
)
def evaluations(e: Recorded) -> Iterator[Row]:
    """``status``: requested, evaluated. ``scored`` counts items, NULL where none is an event of its own; ``items`` is
    the digest of the item table."""
    match e.event:
        case facts.EvaluationRequested() as x:
            request = x.model_dump(
                include={"evaluation", "checkpoint", "iteration", "split", "forced_tool", "n", "benchmark"}
            )
            yield {"run": e.run, **request, "status": "requested", "requested": stamp(e)}
        case facts.EvaluationItemScored() as x:
            yield {"run": e.run, "evaluation": x.evaluation, "scored": 1}
        case facts.CheckpointEvaluated() as x:
            yield {
                "run": e.run,
                **x.model_dump(include=_COPIED),
                "by_domain": as_json(x.by_domain),
                "by_level": as_json(x.by_level),
                "items": x.items.sha256 if x.items else None,
                "status": "evaluated",
                "evaluated": stamp(e),
                "evaluated_seq": e.seq,
            }


def list_evaluations(db: sqlite3.Connection, run: str) -> list[Row]:
    """List the evaluations of a run in order; those not finished come last."""
    return select(
        db,
        "SELECT * FROM evaluations WHERE run = ? ORDER BY evaluated_seq IS NULL, evaluated_seq, evaluation",
        (run,),
        parse=("by_domain", "by_level"),
    )


def validations(db: sqlite3.Connection, run: str) -> list[tuple[int, str, float]]:
    """(iteration, when it was evaluated, accuracy) of the validations of a run, in order; -1 being the untrained
    student."""
    query = (
        "SELECT iteration, evaluated, accuracy FROM evaluations WHERE run = ? AND split = 'validation'"
        " AND forced_tool = 0 AND status = 'evaluated' ORDER BY iteration"
    )
    return db.execute(query, (run,)).fetchall()


def scores_with_shared(db: sqlite3.Connection, run: str) -> list[Row]:
    """List what was scored in ``run``, behind what its parents had scored before the fork, oldest first. An evaluation
    that the fork made again, as another base does, is there once, as its own."""
    evaluations: list[Row] = []
    for owner, until in lineage(db, run):
        past = [row for row in list_evaluations(db, owner) if row["evaluated_seq"] and row["evaluated_seq"] <= until]
        evaluations = [*past, *evaluations]
    newest = {row["evaluation"]: row for row in evaluations}
    return [row for row in evaluations if newest[row["evaluation"]] is row]


def validations_with_shared(db: sqlite3.Connection, run: str) -> list[Row]:
    """The validations of ``run`` and those that it shares with its parents, as ``scores_with_shared`` has them, by
    iteration."""
    scores = [row for row in scores_with_shared(db, run) if row["split"] == "validation" and not row["forced_tool"]]
    return sorted(scores, key=lambda row: row["iteration"])


def shared_curve(db: sqlite3.Connection, run: str) -> list[Row]:
    """The points of the learning curve that a fork shares with its parents and did not score anew: those of
    ``learning_curve``, each with the ``run`` that made it."""
    if not parent_of(db, run):
        return []
    shared = {row["iteration"]: row["run"] for row in validations_with_shared(db, run)}
    curves = {owner: learning_curve(db, owner) for owner in {*shared.values()} - {run}}
    points = [{**point, "run": owner} for owner, curve in curves.items() for point in curve]
    return sorted((p for p in points if shared.get(p["iteration"]) == p["run"]), key=lambda p: p["iteration"])


def curve_with_shared(db: sqlite3.Connection, run: str) -> list[Row]:
    """The ``learning_curve`` of ``run``, of a fork behind the points that it shares with its parents."""
    points = [{name: value for name, value in point.items() if name != "run"} for point in shared_curve(db, run)]
    return points + learning_curve(db, run)


def learning_curve(db: sqlite3.Connection, run: str) -> list[Row]:
    """One point an iteration (-1: before any training): validation accuracy, tool use, frontier share, reward. Beside
    accuracy, of the items that can be checked: what one greedy attempt solves (``solved_at_once``), and what one of up
    to ``checked`` sampled ones does (``solved_within``).

    ``frontier`` is the share of accepted tasks that some attempts solved and some did not; ``tool_tasks`` the share of
    attempts with a successful tool call; ``attempt_s`` their mean seconds; ``began`` when its first task was asked for;
    ``solved_tasks`` the share of tasks that one of their attempts solved; ``cost_usd`` what its calls of remote
    models cost in US dollars, None where there were none or nobody knows the price of one.
    Columns are None where nothing was measured.
    """
    return select(db, _CURVE, (run,) * 6)


_CURVE = """
WITH held AS (SELECT iteration, accuracy AS validation, lower95, upper95, tool_use, nullif(checked, 0) AS checked,
                     solved_at_once, solved_within, lower95_within, upper95_within FROM evaluations
              WHERE run = ? AND split = 'validation' AND NOT forced_tool AND status = 'evaluated'),
     asked AS (SELECT iteration, count(*) AS tasks, sum(status = 'accepted') AS accepted,
                      avg(CASE WHEN solve_rate IS NOT NULL THEN solve_rate > 0 AND solve_rate < 1 END) AS frontier,
                      avg(solve_rate) AS solve_rate, avg(solve_rate > 0) AS solved_tasks, avg(novelty) AS novelty,
                      min(requested) AS began
               FROM tasks WHERE run = ? GROUP BY iteration),
     tried AS (SELECT iteration, count(*) AS attempts, avg(tool_ok > 0) AS tool_tasks, avg(reward) AS reward,
                      avg(wall_s) AS attempt_s FROM attempts WHERE run = ? GROUP BY iteration),
     paid AS (SELECT iteration, avg(total) AS teacher_reward FROM rewards WHERE run = ? AND role = 'teacher'
              GROUP BY iteration),
     judged AS (SELECT iteration, max(status = 'promoted') AS promoted FROM checkpoints
                WHERE run = ? AND role = 'student' GROUP BY iteration),
     charged AS (SELECT iteration, CASE WHEN NOT sum(unpriced) THEN sum(cost) / 1e9 END AS cost_usd
                 FROM model_usage JOIN tasks USING (run, task)
                 WHERE run = ? AND calls > 0 GROUP BY iteration),
     points AS (SELECT iteration FROM held UNION SELECT iteration FROM asked)
SELECT iteration, validation, lower95, upper95, checked, solved_at_once, solved_within, lower95_within, upper95_within,
       tool_use, tasks, accepted, frontier, solve_rate, solved_tasks, novelty, attempts, tool_tasks, reward,
       teacher_reward, attempt_s, promoted, began, cost_usd
FROM points LEFT JOIN held USING (iteration) LEFT JOIN asked USING (iteration) LEFT JOIN tried USING (iteration)
     LEFT JOIN paid USING (iteration) LEFT JOIN judged USING (iteration) LEFT JOIN charged USING (iteration)
ORDER BY iteration
"""
