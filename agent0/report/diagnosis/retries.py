"""Reactions that fail again and again without having been given up, from the table of events."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Sequence

from agent0.projections.base import Row, select
from agent0.run.diagnosis.case import Retry

_TRIES = (
    "SELECT tried.seq, tried.cause, json_extract(tried.body, '$.data') AS data, of.task, of.attempt"
    " FROM events AS tried LEFT JOIN events AS of ON of.id = tried.cause"
    " WHERE tried.run = ? AND tried.type = 'ReactionTried' ORDER BY tried.seq"
)
_EFFECTS = (
    "SELECT cause, handler, max(seq) AS seq FROM events WHERE run = ? AND handler != ''"
    " AND cause IN (SELECT value FROM json_each(?)) GROUP BY cause, handler"
)
Tries = dict[tuple[str, str], list[Row]]
"""(handler, id of the cause) -> tries that failed, or during which the process ended."""


def retries_of(db: sqlite3.Connection, run: str) -> tuple[Retry, ...]:
    """Gather the tries of ``run`` that failed and that no effect of their reaction followed, by handler."""
    rows = select(db, _TRIES, (run,), ("data",))
    if not rows:
        return ()
    causes = json.dumps(sorted({row["cause"] for row in rows}))
    done = {(row["handler"], row["cause"]): row["seq"] for row in select(db, _EFFECTS, (run, causes))}
    by_handler: dict[str, list[list[Row]]] = defaultdict(list)
    for (handler, cause), tries in _open(rows).items():
        if tries and tries[-1]["seq"] > done.get((handler, cause), 0):
            by_handler[handler].append(tries)
    retries = [_retry(handler, reactions) for handler, reactions in by_handler.items()]
    return tuple(sorted(retries, key=lambda retry: (-retry.tries, -retry.event)))


def _open(rows: Sequence[Row]) -> Tries:
    """Failed tries, and beginnings without an end: a failure, or what was given back, ends the one before it."""
    tries: Tries = defaultdict(list)
    for row in rows:
        attempts = tries[row["data"]["tried_handler"], row["cause"]]
        if row["data"]["noted"] and attempts and attempts[-1]["data"]["outcome"] == "begun":
            attempts.pop()
        if row["data"]["outcome"] != "left":
            attempts.append(row)
    return tries


def _retry(handler: str, reactions: Sequence[Sequence[Row]]) -> Retry:
    tries = sorted((row for reaction in reactions for row in reaction), key=lambda row: int(row["seq"]))
    worst = max(reactions, key=len)
    last = next((row for row in reversed(worst) if row["data"]["error"]), worst[-1])
    return Retry(
        handler=handler,
        error=last["data"]["error"],
        message=" ".join(str(last["data"]["message"]).split())[:300],
        tries=len(tries),
        reactions=len(reactions),
        most=len(worst),
        cause=f"{last['data']['cause_type']}, event {last['data']['cause_seq']}",
        task=_named(last["task"]),
        attempt=_named(last["attempt"]),
        event=last["seq"],
        events=tuple(int(row["seq"]) for row in tries),
    )


def _named(token: str | None) -> str:
    return "" if token in (None, "-") else str(token)
