"""One row per run: its status, its counts and its held-out accuracy."""

import difflib
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent0.errors import NotFoundError
from agent0.events import alarms, benchmarks, budgets, checkpoints, experiments, policies, submissions, tasks
from agent0.events import runs as facts
from agent0.events.base import Event, Recorded
from agent0.projections.base import Row, as_json, behind_row, projection, select, stamp
from agent0.settings import LARGEST

_NO_RUNS = (policies.RUN, alarms.LOG)
_NOT_OF_RUNS = (benchmarks.__name__, submissions.__name__)
_NO_RUN = (experiments.PREFIX, budgets.PREFIX, submissions.PREFIX)


@projection(
    key=("run",),
    columns={
        "run": str,
        "name": str,
        "profile": str,
        "seed": int,
        "paused": bool,
        "failed": str,
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
        "student_adapter": str,
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
        "servers": str,
        "prompts": str,
        "state_sha": str,
        "hidden": bool,
        "tags": str,
        "note": str,
        "deleted": str,
    },
    first=("ended", "ended_at", "heldout_first"),
    adds=("events", "tasks", "accepted", "rejected", "attempts", "tool_calls", "open_failures"),
    computed={
        "status": "coalesce(CASE WHEN deleted IS NOT NULL THEN 'deleted' END, ended, "
        "CASE WHEN started IS NULL THEN 'unknown' WHEN failed IS NOT NULL THEN 'failed' "
        "WHEN paused THEN 'paused' ELSE 'running' END)",
        "wall_s": "round((julianday(coalesce(ended_at, updated)) - julianday(started)) * 86400, 3)",
    },
)
def runs(e: Recorded) -> Iterator[Row]:
    """Runs that train; policies, benchmarks, experiments and submitted tasks have tables of their own. The first end of
    a run counts.

    ``failed``: the cause, where it failed and was not resumed since. ``wall_s`` is from its start to its end, or to its
    last event.
    """
    if e.run in _NO_RUNS or e.run.startswith(_NO_RUN) or type(e.event).__module__ in _NOT_OF_RUNS:
        return
    row: Row = {"run": e.run, "events": 1, "updated": stamp(e)}
    if change := _CHANGES.get(type(e.event)):
        row.update(change(e, e.event))
    yield row


def _started(e: Recorded, x: facts.RunStarted) -> Row:
    return {
        **x.model_dump(include={"name", "profile", "seed", "config_sha", "parent", "parent_seq"}),
        "config": as_json(x.config),
        "servers": as_json(x.servers),
        "prompts": as_json(x.prompts),
        "started": stamp(e),
        "student": "base",
        "student_adapter": x.student_adapter and x.student_adapter.sha256,
    }


def _moved(servers: dict[str, str]) -> Row:
    return {"servers": as_json(servers)} if servers else {}


def _evaluated(e: Recorded, x: checkpoints.CheckpointEvaluated) -> Row:
    return {held_out_column(x.evaluation, x.forced_tool): x.accuracy} if x.split == "test" else {}


def held_out_column(evaluation: str, forced_tool: bool) -> str:
    """The column of a run's row that has the accuracy of this evaluation, which is one on the test set."""
    if forced_tool:
        return "forced_tool"
    return "heldout_last" if evaluation.endswith("-test-final") else "heldout_first"


_CHANGES: dict[type[Event], Callable[[Recorded, Any], Row]] = {
    facts.RunStarted: _started,
    facts.RunPaused: lambda e, x: {"paused": True},
    facts.RunResumed: lambda e, x: {"paused": False, "failed": None} | _moved(x.servers),
    facts.RunFailed: lambda e, x: {"failed": x.reason},
    facts.RunCancelled: lambda e, x: {"ended": "cancelled", "ended_at": stamp(e)},
    facts.RunLabelled: lambda e, x: {"hidden": x.hidden, "tags": as_json(x.tags), "note": x.note},
    facts.RunDeleted: lambda e, x: {"deleted": stamp(e)},
    facts.RunFinished: lambda e, x: {"ended": "finished", "ended_at": stamp(e), "state_sha": x.state_sha},
    tasks.TaskRequested: lambda e, x: {"tasks": 1, "iteration": x.iteration},
    tasks.TaskAccepted: lambda e, x: {"accepted": 1},
    tasks.TaskRejected: lambda e, x: {"rejected": 1},
    tasks.TaskAttempted: lambda e, x: {"attempts": 1},
    tasks.ToolCalled: lambda e, x: {"tool_calls": 1},
    checkpoints.CheckpointEvaluated: _evaluated,
    checkpoints.CheckpointPromoted: lambda e, x: {"student": x.checkpoint, "validation": x.accuracy},
    checkpoints.CheckpointRolledBack: lambda e, x: {"student": x.to},
    alarms.ReactionFailed: lambda e, x: {"open_failures": 1},
    alarms.ReactionRetried: lambda e, x: {"open_failures": -1},
    alarms.ReactionDropped: lambda e, x: {"open_failures": -1},
}


_RUNS = """
SELECT *, CASE WHEN status = 'running' THEN (
    SELECT group_concat(message, '; ') FROM (
        SELECT message FROM alarms
        WHERE alarms.run = runs.run AND alarms.status = 'raised' AND alarm LIKE 'dependency/%' ORDER BY alarm
    )
) END AS waits_for FROM runs
"""
"""Runs; ``waits_for`` says which handlers of a running one wait for what, and why. NULL where none does."""


@dataclass(frozen=True)
class RunFilter:
    """Which runs a list has: of this tag, profile and status, with ``text`` in id, name, tag or note whatever its case.
    What is empty filters nothing."""

    tag: str = ""
    profile: str = ""
    status: str = ""
    text: str = ""

    def conditions(self) -> dict[str, str]:
        """SQL conditions on a row of the table of runs, each with its one parameter."""
        searched = "run || ' ' || name || ' ' || coalesce(tags, '') || ' ' || coalesce(note, '')"
        named = {
            "EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)": self.tag,
            "profile = ?": self.profile,
            "status = ?": self.status,
            f"instr(lower({searched}), lower(?))": self.text,
        }
        return {condition: value for condition, value in named.items() if value}


EVERY = RunFilter()


def list_runs(
    db: sqlite3.Connection, limit: int = 100, after: str = "", hidden: bool = False, chosen: RunFilter = EVERY
) -> list[Row]:
    """List runs that have started and that ``chosen`` lets through, newest first, without their configuration; those
    that started before ``after`` where it is named. Runs that are deleted, or hidden from lists, only where ``hidden``
    or the status asked for says so.

    Raises:
        NotFoundError: there is no run ``after``.
    """
    _, before = behind_row(db, "runs", {"run": after}, ("started", "run")) if after else ("", ("~", ""))
    clause = "" if hidden or chosen.status == "deleted" else "AND deleted IS NULL AND NOT coalesce(hidden, 0) "
    clause += "".join(f"AND {condition} " for condition in chosen.conditions())
    query = (
        f"{_RUNS} WHERE started IS NOT NULL {clause}AND (started, run) < (?, ?) ORDER BY started DESC, run DESC LIMIT ?"
    )
    rows = select(db, query, (*chosen.conditions().values(), *before, limit))
    return [{k: v for k, v in row.items() if k not in ("config", "prompts", "servers")} for row in rows]


def run_places(db: sqlite3.Connection, runs: Sequence[str]) -> dict[str, int]:
    """How many runs started before each of ``runs``: a number that a run keeps, by which pictures give it a colour."""
    query = (
        "SELECT run, place FROM (SELECT run, row_number() OVER (ORDER BY started, run) - 1 AS place FROM runs"
        " WHERE started IS NOT NULL) WHERE run IN (SELECT value FROM json_each(?))"
    )
    return {row["run"]: row["place"] for row in select(db, query, (as_json(list(runs)),))}


def run_labels(db: sqlite3.Connection) -> Row:
    """Tags, profiles and statuses that any run has, each in order."""
    rows = select(db, "SELECT DISTINCT profile, status, tags FROM runs WHERE started IS NOT NULL")
    tags = {tag for row in rows for tag in json.loads(row["tags"] or "[]")}
    columns = {name: sorted({str(row[name]) for row in rows}) for name in ("profile", "status")}
    return {"tag": sorted(tags), **columns}


def resolve(db: sqlite3.Connection, run: str) -> str:
    """Resolve what a user typed to a run's id: an id, ``LAST``, ``LAST~1`` (the one before it), a name that one run
    has, or a beginning that one id has.

    Raises:
        NotFoundError: there is no such run, or several.
    """
    if newest := _NEWEST.fullmatch(run):
        return _newest(db, int(newest[1] or 0))
    matches = select(
        db,
        "SELECT run, name FROM runs WHERE started IS NOT NULL AND (run = ?1 OR name = ?1 OR"
        " (?1 != '' AND substr(run, 1, length(?1)) = ?1)) ORDER BY started DESC, run DESC",
        (run,),
    )
    exact = [row for row in matches if row["run"] == run] or [row for row in matches if row["name"] == run] or matches
    if len(exact) == 1:
        return str(exact[0]["run"])
    if exact:
        names = ", ".join(row["run"] for row in exact[:_TOLD]) + (" …" if len(exact) > _TOLD else "")
        fix = "Name more of one of them, or LAST for the newest run."
        raise NotFoundError(f"{len(exact)} runs are called {run[:80]!r} or begin so.", f"{names}.", fix)
    run_ids = [row["run"] for row in select(db, "SELECT run FROM runs WHERE started IS NOT NULL")]
    near = difflib.get_close_matches(run, run_ids, 1, 0.7)
    fix = "`agent0 run list` shows them; `agent0 run start` begins one."
    raise NotFoundError(f"There is no run {run[:80]!r}.", f"Did you mean {near[0]}?" if near else "", fix)


_NEWEST = re.compile(r"LAST(?:~(\d{1,6}))?")
_TOLD = 5
"""Runs that a refusal names."""


def _newest(db: sqlite3.Connection, before: int) -> str:
    """The run that started last but ``before`` others."""
    runs = list_runs(db, before + 1)
    if len(runs) > before:
        return str(runs[before]["run"])
    start = "`agent0 run list` shows them; `agent0 run start` begins one."
    if not runs:
        hidden = "`agent0 run list --all` has hidden and deleted ones." if list_runs(db, 1, hidden=True) else ""
        raise NotFoundError("There is no run in the list." if hidden else "There is no run yet.", hidden, start)
    many = "is one run" if len(runs) == 1 else f"are {len(runs)} runs"
    raise NotFoundError(f"There is no run LAST~{before}.", f"There {many}: the oldest is LAST~{len(runs) - 1}.", start)


def show_run(db: sqlite3.Connection, run: str) -> Row:
    """Everything about one run: its row with parsed configuration, addresses included.

    Raises:
        NotFoundError: there is no such run.
    """
    return _served(select(db, f"{_RUNS} WHERE run = ?", (resolve(db, run),), parse=("config", "prompts", "servers"))[0])


def _served(row: Row) -> Row:
    """``row`` with the addresses of its models' servers among its settings."""
    servers, config = row.pop("servers") or {}, row["config"]
    if judge := servers.pop("judge", ""):
        verification = config["verification"]
        config["verification"] = {**verification, "judge": {**verification["judge"], "base_url": judge}}
    return row | {"config": config | {role: {**config[role], "base_url": url} for role, url in servers.items()}}


def show_runs(db: sqlite3.Connection, runs: Sequence[str]) -> list[Row]:
    """Everything about each of ``runs``, which are ids, in order, without prompts and addresses; no row of one that is
    not there."""
    query = f"{_RUNS} WHERE run IN (SELECT value FROM json_each(?))"  # noqa: S608 - text of our own
    rows = {row["run"]: row for row in select(db, query, (as_json(list(runs)),), parse=("config",))}
    for row in rows.values():
        del row["servers"]
    return [rows[run] for run in dict.fromkeys(runs) if run in rows]


def iterations_made(row: Row) -> int:
    """How many iterations the run of ``row`` (``show_run``) makes; where its time decides, how many it has begun."""
    if not row["config"].get("time_limit"):
        return int(row["config"]["iterations"])
    return 0 if row["iteration"] is None else int(row["iteration"]) + 1


def parent_of(db: sqlite3.Connection, run: str) -> tuple[str, int] | None:
    """The run that ``run`` is a fork of, and the last event that both share; None where it is none."""
    rows = select(db, "SELECT parent, parent_seq FROM runs WHERE run = ? AND parent != ''", (run,))
    return (str(rows[0]["parent"]), int(rows[0]["parent_seq"])) if rows else None


def lineage(db: sqlite3.Connection, run: str) -> Iterator[tuple[str, int]]:
    """``run`` and the runs that it was forked from, the nearest first, each with the last event that counts there."""
    visited, until = {run}, LARGEST
    yield run, until
    while (parent := parent_of(db, run)) and parent[0] not in visited:
        run, until = parent[0], min(until, parent[1])
        visited.add(run)
        yield run, until


def under_way(db: sqlite3.Connection, run: str = "") -> tuple[int, int]:
    """(runs that are running, attempts in them that were asked for and have not ended); of one run where named."""
    running = select(db, "SELECT run FROM runs WHERE status = 'running' AND (run = ? OR ? = '')", (run, run))
    begun = (
        "SELECT count(*) AS n FROM attempts JOIN runs USING (run) WHERE runs.status = 'running'"
        " AND attempts.iteration = coalesce(runs.iteration, 0) AND attempts.status IN ('requested', 'working')"
        " AND (run = ? OR ? = '')"
    )
    return len(running), select(db, begun, (run, run))[0]["n"]
