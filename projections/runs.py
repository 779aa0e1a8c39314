"""One row a run: where it stands, what it counted, what held-out tasks said."""

import sqlite3
from collections.abc import Iterator

from agent0.errors import NotFoundError
from events import alarms, checkpoints, runs as facts, tasks
from events.base import Event, Recorded
from projections.base import Row, as_json, projection, select, stamp

_COUNTS: dict[type[Event], str] = {
    tasks.TaskRequested: "tasks",
    tasks.TaskAccepted: "accepted",
    tasks.TaskRejected: "rejected",
    tasks.TaskAttempted: "attempts",
    tasks.ToolCalled: "tool_calls",
}


@projection(
    key=("run",),
    columns={
        "run": str,
        "name": str,
        "profile": str,
        "seed": int,
        "paused": bool,
        "ended": str,
        "iteration": int,
        "tasks": int,
        "accepted": int,
        "rejected": int,
        "attempts": int,
        "tool_calls": int,
        "events": int,
        "open_failures": int,
        "student": str,
        "validation": float,
        "heldout_first": float,
        "heldout_last": float,
        "forced_tool": float,
        "started": str,
        "ended_at": str,
        "updated": str,
        "parent": str,
        "parent_seq": int,
        "config": str,
        "config_sha": str,
        "prompts": str,
        "state_sha": str,
    },
    first=("ended", "ended_at", "heldout_first"),
    adds=("events", "open_failures", *_COUNTS.values()),
    computed={
        "status": "coalesce(ended, CASE WHEN started IS NULL THEN 'unknown' "
        "WHEN paused THEN 'paused' ELSE 'running' END)",
        "wall_s": "round((julianday(coalesce(ended_at, updated)) - julianday(started)) * 86400, 3)",
    },
)
def runs(e: Recorded) -> Iterator[Row]:
    """The first end of a run counts; ``wall_s`` is from its start to its end, or to its last event."""
    row = {"run": e.run, "events": 1, "updated": stamp(e)}
    if counted := _COUNTS.get(type(e.event)):
        row[counted] = 1
    row.update(_lifecycle(e))
    row.update(_learning(e.event))
    yield row


def _lifecycle(e: Recorded) -> Row:
    match e.event:
        case facts.RunStarted() as x:
            return {
                **x.model_dump(include={"name", "profile", "seed", "config_sha", "parent", "parent_seq"}),
                "config": as_json(x.config),
                "prompts": as_json(x.prompts),
                "started": stamp(e),
                "student": "base",
            }
        case facts.RunPaused() | facts.RunResumed():
            return {"paused": isinstance(e.event, facts.RunPaused)}
        case facts.RunCancelled():
            return {"ended": "cancelled", "ended_at": stamp(e)}
        case facts.RunFinished() as x:
            return {"ended": "finished", "ended_at": stamp(e), "state_sha": x.state_sha}
    return {}


def _learning(event: Event) -> Row:
    match event:
        case tasks.TaskRequested():
            return {"iteration": event.iteration}
        case checkpoints.CheckpointPromoted():
            return {"student": event.checkpoint, "validation": event.accuracy}
        case checkpoints.CheckpointRolledBack():
            return {"student": event.to}
        case checkpoints.CheckpointEvaluated(split="test", forced_tool=True):
            return {"forced_tool": event.accuracy}
        case checkpoints.CheckpointEvaluated(split="test"):
            return {"heldout_first": event.accuracy, "heldout_last": event.accuracy}
        case alarms.ReactionFailed():
            return {"open_failures": 1}
        case alarms.ReactionRetried() | alarms.ReactionDropped():
            return {"open_failures": -1}
    return {}


def list_runs(db: sqlite3.Connection, limit: int = 100) -> list[Row]:
    """Newest first, without configuration."""
    rows = select(db, "SELECT * FROM runs WHERE started IS NOT NULL ORDER BY started DESC, run DESC LIMIT ?", (limit,))
    return [{k: v for k, v in row.items() if k not in ("config", "prompts")} for row in rows]


def latest_run(db: sqlite3.Connection) -> str | None:
    """Id of the run that started last."""
    found = list_runs(db, 1)
    return found[0]["run"] if found else None


def resolve(db: sqlite3.Connection, run: str) -> str:
    """A run's id from what a person typed: an id, or ``LAST``.

    Raises:
        NotFoundError: there is no such run.
    """
    wanted = latest_run(db) if run == "LAST" else run
    if wanted and select(db, "SELECT run FROM runs WHERE run = ? AND started IS NOT NULL", (wanted,)):
        return wanted
    what = "There is no run yet." if run == "LAST" else f"There is no run {run!r}."
    raise NotFoundError(what, fix="`agent0 run list` shows them; `agent0 run start` begins one.")


def show_run(db: sqlite3.Connection, run: str) -> Row:
    """Everything about one run: its row with parsed configuration.

    Raises:
        NotFoundError: there is no such run.
    """
    return select(db, "SELECT * FROM runs WHERE run = ?", (resolve(db, run),), parse=("config", "prompts"))[0]
