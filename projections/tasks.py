"""One row per task: what was requested of the teacher, its proposal, and what became of it."""

import sqlite3
from collections.abc import Iterator

from agent0.errors import NotFoundError
from agent0.events import alarms
from agent0.events import tasks as facts
from agent0.events.base import Recorded
from agent0.events.values import Task
from agent0.projections.base import Row, as_json, behind_row, find, projection, select, stamp
from agent0.projections.reviews import list_reviews


@projection(
    key=("run", "task"),
    columns={
        "run": str,
        "task": str,
        "iteration": int,
        "slot": int,
        "domain": str,
        "family": str,
        "level": int,
        "kind": str,
        "status": str,
        "question": str,
        "canonical": str,
        "params": str,
        "program": str,
        "tests": str,
        "checker": str,
        "subgoals": str,
        "programs": str,
        "row_id": str,
        "epoch": int,
        "novelty": float,
        "against": int,
        "reason": str,
        "detail": str,
        "attempts": int,
        "solve_rate": float,
        "teacher": str,
        "teacher_reward": float,
        "model": str,
        "prompt": str,
        "seed": int,
        "requested": str,
        "requested_seq": int,
        "closed": str,
    },
    events=(
        facts.TaskRequested,
        facts.TaskProposed,
        facts.TaskAccepted,
        facts.TaskRejected,
        facts.AttemptRequested,
        facts.RewardAssigned,
        alarms.ReactionDropped,
    ),
    adds=("attempts",),
    first=("closed",),
    indexes=(("run", "iteration"), ("canonical",)),
)
def tasks(e: Recorded) -> Iterator[Row]:
    """``status``: requested, proposed, accepted, rejected, dropped. ``reason``: why it was refused, or of an accepted
    one why its own answer is in doubt. ``closed`` is when the teacher was rewarded. ``subgoals`` and ``programs`` are
    JSON lists, NULL where there are none. ``row_id`` and ``epoch`` (from 0) are those of a row of a file."""
    at = {"run": e.run, "task": e.task}
    match e.event:
        case facts.TaskRequested() as x:
            request = x.model_dump(include={"iteration", "slot", "domain", "family", "level", "teacher", "seed"})
            yield {**at, **request, "status": "requested", "requested": stamp(e), "requested_seq": e.seq}
        case facts.TaskProposed() as x:
            detail = {"detail": x.problem} if x.problem else {}
            yield {
                **at,
                **_task_columns(x.proposal),
                **detail,
                "status": "proposed",
                "model": x.model,
                "prompt": x.prompt,
            }
        case facts.TaskAccepted() as x:
            yield {**at, **_task_columns(x.proposal), "status": "accepted", "novelty": x.novelty, "against": x.against}
        case facts.TaskRejected() as x:
            yield {**at, "status": "rejected", "reason": x.reason, "detail": x.detail, "novelty": x.novelty}
        case facts.AttemptRequested():
            yield {**at, "attempts": 1}
        case facts.RewardAssigned(role="teacher") as x:
            rate = x.facts.get("solve_rate")
            doubt = {"reason": x.facts["doubt"]} if x.facts.get("doubt") else {}
            yield {**at, "teacher_reward": x.total, "solve_rate": rate, "closed": stamp(e), **doubt}
        case alarms.ReactionDropped() as x if x.failed_handler in _SETTLING:
            status = {} if x.failed_handler == "assign_reward" else {"status": "dropped", "detail": x.reason}
            yield {"run": e.run, "task": x.cause_task, **status, "closed": stamp(e)}


_SETTLING = ("propose_task", "screen_task", "assign_reward")
"""Handlers without whose effect nothing more becomes of a task."""


def _task_columns(task: Task | None) -> Row:
    if task is None:
        return {}
    return {
        "domain": task.domain,
        "family": task.family,
        "level": task.level,
        "question": task.question,
        "canonical": task.canonical,
        "params": as_json(task.params),
        "program": task.program,
        "tests": task.tests or None,
        "checker": task.checker or None,
        "kind": task.kind,
        "subgoals": as_json(task.subgoals) if task.subgoals else None,
        "programs": as_json(task.programs) if task.programs else None,
        "row_id": task.row.id if task.row else None,
        "epoch": task.row.epoch if task.row else None,
    }


def list_tasks(
    db: sqlite3.Connection,
    run: str,
    iteration: int | None = None,
    status: str = "",
    domain: str = "",
    limit: int = 100,
    after: str = "",
) -> list[Row]:
    """Tasks of a run in the order they were asked for, those behind the task ``after`` where it is named; ``solved``:
    by one of its attempts; ``credit`` is the mean share of right steps of long ones, apart from how often they were
    solved.

    Raises:
        NotFoundError: there is no such task.
    """
    return find(
        db,
        "SELECT task, iteration, slot, domain, family, level, status, question, novelty, reason, detail, attempts,"
        " solve_rate, solve_rate > 0 AS solved,"
        " (SELECT avg(credit) FROM attempts a WHERE a.run = tasks.run AND a.task = tasks.task) AS credit,"
        " teacher_reward FROM tasks",
        {"run": run, "iteration": iteration, "status": status, "domain": domain},
        order="iteration, slot",
        limit=limit,
        behind=behind_row(db, "tasks", {"run": run, "task": after}, ("iteration", "slot")) if after else ("", ()),
    )


def questions_of(db: sqlite3.Connection, run: str) -> dict[str, str]:
    """The question of each task of a run that has one, by the task's name."""
    rows = select(db, "SELECT task, question FROM tasks WHERE run = ? AND question IS NOT NULL", (run,))
    return {row["task"]: row["question"] for row in rows}


def show_task(db: sqlite3.Connection, run: str, task: str) -> Row:
    """One task with its attempts, the teacher's receipt and its reviews.

    Raises:
        NotFoundError: the run has no such task.
    """
    lists = ("params", "subgoals", "programs")
    rows = select(db, "SELECT * FROM tasks WHERE run = ? AND task = ?", (run, task), parse=lists)
    if not rows:
        raise NotFoundError(f"Run {run} has no task {task!r}.", fix=f"`agent0 task list {run}` shows them.")
    attempts = select(
        db,
        "SELECT attempt, status, answer, correct, credit, reward, tool_calls, tool_ok, grounded, wall_s FROM attempts"
        " WHERE run = ? AND task = ? ORDER BY number",
        (run, task),
    )
    return {
        **rows[0],
        "written": _written(db, run, task),
        "attempts": attempts,
        "reviews": list_reviews(db, run, task),
    }


def _written(db: sqlite3.Connection, run: str, task: str) -> str | None:
    """The text that the teacher wrote for a task; None where it was asked for and not yet written."""
    sql = "SELECT body FROM events WHERE run = ? AND task = ? AND +type = 'TaskProposed' ORDER BY seq DESC LIMIT 1"
    rows = select(db, sql, (run, task), ("body",))
    return str(rows[0]["body"]["data"]["text"]) if rows else None


def rows_asked(db: sqlite3.Connection, run: str) -> list[Row]:
    """The rows of its file of questions that a run asked, in the order of their first time: ``asked`` is how often,
    ``last_epoch`` (from 0) when last, ``attempts`` and ``right`` count what the student made of them."""
    return select(
        db,
        "SELECT row_id AS row, count(*) AS asked, max(epoch) AS last_epoch, coalesce(sum(a.attempts), 0) AS attempts,"
        " coalesce(sum(a.right), 0) AS right, question FROM tasks LEFT JOIN (SELECT task, count(*) AS attempts,"
        " sum(correct) AS right FROM attempts WHERE run = ? AND attempted_seq IS NOT NULL GROUP BY task) a"
        " USING (task) WHERE run = ? AND row_id IS NOT NULL GROUP BY row_id ORDER BY min(requested_seq)",
        (run, run),
    )


def patterns(db: sqlite3.Connection, run: str) -> Row:
    """The diversity of accepted tasks: distinct canonical forms per 1,000 accepted tasks."""
    row = select(
        db,
        "SELECT count(*) AS accepted, count(DISTINCT canonical) AS patterns FROM tasks"
        " WHERE run = ? AND status = 'accepted'",
        (run,),
    )[0]
    return {**row, "per_1000": 1000 * row["patterns"] / row["accepted"] if row["accepted"] else None}
