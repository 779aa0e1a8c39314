"""One row per event: the structured, searchable log, and the chain of causes through it."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from agent0.errors import NotFoundError, OperationError
from agent0.events.base import Recorded
from agent0.projections.base import Row, find, match_of, projection, select, stamp
from agent0.projections.runs import lineage
from agent0.projections.wording import describe
from agent0.settings import LARGEST

_LINE = "SELECT seq, time, type, run, task, attempt, handler, id, cause, text FROM"
_LATER = f"{_LINE} (SELECT * FROM events WHERE seq > ?)"  # noqa: S608 - made of constants, like the next two
_MATCHING = f"{_LINE} (SELECT * FROM events_fts(?) AS hit JOIN events ON seq = hit.rowid)"  # noqa: S608
_AMONG = f"{_LINE} events WHERE run = ? AND seq IN (SELECT value FROM json_each(?)) ORDER BY seq"  # noqa: S608
_CHAIN = f"""
WITH RECURSIVE chain(at) AS (
    VALUES (?)
    UNION ALL
    SELECT before.seq FROM chain JOIN events AS step ON step.seq = at JOIN events AS before ON before.id = step.cause
    WHERE step.cause != '' AND before.seq < step.seq)
{_LINE} chain JOIN events ON seq = at ORDER BY seq
"""  # noqa: S608


@projection(
    key=("seq",),
    columns={
        "seq": int,
        "id": str,
        "type": str,
        "version": int,
        "run": str,
        "task": str,
        "attempt": str,
        "time": str,
        "cause": str,
        "handler": str,
        "code_rev": str,
        "text": str,
        "body": str,
    },
    indexes=(("id",), ("cause",), ("run",), ("run", "task"), ("run", "type"), ("type",)),
    search=("text",),
)
def events(e: Recorded, body: str) -> Iterator[Row]:
    """``body`` is what the log holds, byte for byte; ``text`` describes it in one line for users and for search."""
    yield {
        "seq": e.seq,
        "id": e.id,
        "type": e.type,
        "version": e.version,
        "run": e.run,
        "task": e.task,
        "attempt": e.attempt,
        "time": stamp(e),
        "cause": e.cause,
        "handler": e.handler,
        "code_rev": e.code_rev,
        "text": describe(e),
        "body": body,
    }


def list_events(
    db: sqlite3.Connection, run: str = "", type: str = "", task: str = "", after: int = 0, limit: int = 100
) -> list[Row]:
    """Events after a sequence, oldest first, without bodies."""
    return find(db, _LATER, {"run": run, "type": type, "task": task}, "seq", limit, params=(after,))


def stored_events(
    db: sqlite3.Connection,
    run: str = "",
    type: str = "",
    task: str = "",
    after: int = 0,
    until: int = 0,
    limit: int = -1,
) -> list[Row]:
    """Events after a sequence up to another (0: the end), oldest first: ``seq``, ``text`` and the stored ``body``.
    Several values of ``type`` stand between commas."""
    several = type.split(",") if "," in type else []
    condition, values = "seq > ? AND seq <= ?", [after, until or LARGEST, *several]
    if several:
        condition += f" AND type IN ({', '.join('?' * len(several))})"
    filters = {"run": run, "type": "" if several else type, "task": task}
    return find(db, "SELECT seq, text, body FROM events", filters, "seq", limit, behind=(condition, values))


def list_named(db: sqlite3.Connection, run: str, seqs: Sequence[int]) -> list[Row]:
    """Events of ``run`` by their sequences, without bodies."""
    return select(db, _AMONG, (run, json.dumps([*seqs])))


def newest_events(db: sqlite3.Connection, run: str = "", type: str = "", limit: int = 100) -> list[tuple[int, bytes]]:
    """(sequence, body) of the newest events, the oldest of them first."""
    rows = find(db, "SELECT seq, body FROM events", {"run": run, "type": type}, "seq DESC", limit)
    return [(row["seq"], str(row["body"]).encode()) for row in reversed(rows)]


def extent(db: sqlite3.Connection) -> tuple[int, int]:
    """Sequences of the first and the last event that the tables hold; 0 where they hold none."""
    row = select(db, "SELECT (SELECT min(seq) FROM events) AS first, (SELECT max(seq) FROM events) AS last")[0]
    return row["first"] or 0, row["last"] or 0


def count_events(db: sqlite3.Connection, run: str = "", type: str = "") -> int:
    """Count the events of ``run`` and ``type``; empty: of all."""
    query = "SELECT coalesce(sum(events), 0) AS n FROM event_counts"
    return int(find(db, query, {"run": run, "type": type}, "n")[0]["n"])


def extent_of(db: sqlite3.Connection, run: str) -> tuple[int, int]:
    """Sequences of the first and the last event of ``run``."""
    row = select(db, "SELECT min(first_seq) AS first, max(last_seq) AS last FROM event_counts WHERE run = ?", (run,))[0]
    return row["first"] or 0, row["last"] or 0


def nth_event(db: sqlite3.Connection, run: str, number: int) -> int | None:
    """Sequence of the event of ``run`` that has ``number`` of its events before it; None where it has fewer."""
    rows = select(db, "SELECT seq FROM events WHERE run = ? ORDER BY seq LIMIT 1 OFFSET ?", (run, number))
    return int(rows[0]["seq"]) if rows else None


def first_event(db: sqlite3.Connection, run: str, task: str, attempt: str = "", type: str = "", skip: int = 0) -> int:
    """Sequence of the first event of a task, or of an attempt at it (of ``type``, behind ``skip`` others); 0: there is
    none."""
    named = {"run": run, "task": task, "attempt": attempt, "type": type}
    rows = find(db, "SELECT seq FROM events", named, "seq", skip + 1)
    return int(rows[skip]["seq"]) if len(rows) > skip else 0


def iteration_starts(db: sqlite3.Connection, run: str) -> dict[int, int]:
    """Sequence of the last event of ``run`` before each of its iterations, by number, in order. A
    fork goes on with those of its parent, and has those alone in which it asked for tasks."""
    return {int(row["number"]): int(row["seq"]) for row in select(db, _STARTS, (run,)) if row["seq"] is not None}


_STARTS = """
SELECT iteration AS number, (SELECT seq FROM events WHERE run = ?1 AND seq < begun ORDER BY seq DESC LIMIT 1) AS seq
FROM (SELECT iteration, min(requested_seq) AS begun FROM tasks
      WHERE run = ?1 AND requested_seq IS NOT NULL AND iteration >= 0 GROUP BY iteration)
ORDER BY begun
"""


def begun_in_parent(db: sqlite3.Connection, run: str, number: int) -> tuple[str, int] | None:
    """The parent, or its parent, in which an iteration of a fork began, and the event before it; None: in none."""
    for owner, until in lineage(db, run):
        seq = iteration_starts(db, owner).get(number)
        if owner != run and seq is not None and seq <= until:
            return owner, seq
    return None


def newest_lines(db: sqlite3.Connection, run: str, limit: int) -> list[Row]:
    """The newest events of ``run``, the newest first, without bodies."""
    return find(db, f"{_LINE} events", {"run": run}, "seq DESC", limit)


def attempt_extent(db: sqlite3.Connection, run: str, task: str, attempt: str) -> tuple[int, str]:
    """How many events an attempt has, and the time of its first; an empty text where it has none."""
    row = select(db, f"SELECT count(*) AS n, min(time) AS first FROM events {_ATTEMPT}", (run, task, attempt))[0]  # noqa: S608
    return row["n"], row["first"] or ""


def attempt_events(
    db: sqlite3.Connection, run: str, task: str, attempt: str, skip: int = 0, limit: int = -1
) -> list[Row]:
    """Events of one attempt in their order, without the first ``skip``. ``wall_s`` is what a tool call or the whole
    attempt took."""
    took = "coalesce(json_extract(body, '$.data.result.wall_s'), json_extract(body, '$.data.wall_s')) AS wall_s"
    query = f"SELECT seq, time, type, handler, text, {took} FROM events {_ATTEMPT} ORDER BY seq LIMIT ? OFFSET ?"  # noqa: S608
    return select(db, query, (run, task, attempt, limit, skip))


_ATTEMPT = "WHERE run = ? AND task = ? AND attempt = ?"


def show_event(db: sqlite3.Connection, reference: str) -> Row:
    """One event by sequence or id, with its parsed body and the events it caused.

    Raises:
        NotFoundError: there is no such event.
    """
    column = "seq" if reference.isdigit() else "id"
    rows = find(db, "SELECT * FROM events", {column: reference}, "seq", parse=("body",))
    if not rows:
        row = select(db, "SELECT min(seq) AS first, max(seq) AS last FROM events")[0]
        why = f"There are events {row['first']} to {row['last']}." if row["last"] else "There are no events yet."
        raise NotFoundError(
            f"There is no event {reference!r}.", why, "`agent0 events grep WORDS` finds events by text."
        )
    caused = f"{_LINE} events WHERE cause = ? AND +run = ? ORDER BY seq"  # by the cause: a run has many events
    effects = select(db, caused, (rows[0]["id"], rows[0]["run"]))
    return {**rows[0], "effects": effects}


def grep_events(db: sqlite3.Connection, query: str, run: str = "", type: str = "", limit: int = 100) -> list[Row]:
    """Events whose text holds all ``query`` (a trailing ``*`` means any ending), newest first."""
    if not query.replace("\0", " ").split():
        raise OperationError("There is nothing to search for.", fix="Give at least one word.")
    if not (match := match_of(query)):
        return []
    return find(db, _MATCHING, {"run": run, "type": type}, "seq DESC", limit, params=(match,))


def event_stats(db: sqlite3.Connection, run: str = "") -> list[Row]:
    """Per type: how many, bytes, first and last time."""
    return select(
        db,
        "SELECT type, sum(events) AS events, sum(bytes) AS bytes, min(first) AS first, max(last) AS last"
        " FROM event_counts WHERE run = ? OR ? = '' GROUP BY type ORDER BY events DESC, type",
        (run, run),
    )


def story(db: sqlite3.Connection, run: str) -> list[Row]:
    """The chain of causes that led to the run's end (or, while it runs, to its last reaction), oldest first.

    Each step's ``cause`` is the ``id`` of the step before. A run that trained has a CheckpointTrained on the way.
    """
    last = select(
        db,
        "SELECT max(seq) AS seq FROM events WHERE run = ? AND cause != '' AND type != 'LogSealed'"
        " GROUP BY type IN ('RunFinished', 'RunFailed') ORDER BY type IN ('RunFinished', 'RunFailed') DESC LIMIT 1",
        (run,),
    )
    return select(db, _CHAIN, (last[0]["seq"],)) if last else list_events(db, run, type="RunStarted")


def unbroken(steps: list[Row]) -> bool:
    """Whether each step names the one before as its cause, and the first is a start."""
    links: list[Any] = [""] + [step["id"] for step in steps[:-1]]
    starts = bool(steps) and steps[0]["type"] == "RunStarted"
    return starts and all(step["cause"] == link for step, link in zip(steps, links, strict=True))
