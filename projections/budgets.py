"""One row per budget: its cap, what is spent, and what is reserved for calls under way. The entries decide."""

import sqlite3
from collections.abc import Iterator

from agent0.events import budgets as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, as_json, find, projection, select, stamp


@projection(
    key=("scope", "name"),
    columns={
        "scope": str,
        "name": str,
        "token": str,
        "cap": str,
        "spent": str,
        "reserved": str,
        "open": str,
        "level": str,
        "updated": str,
    },
    events=(facts.BudgetChanged,),
)
def budgets(e: Recorded) -> Iterator[Row]:
    """Amounts are whole nano-dollars as text, for which no column is too narrow; ``cap`` NULL: there is none."""
    x = e.event
    assert isinstance(x, facts.BudgetChanged)  # noqa: S101 - declared above
    yield {"token": e.run, **_state(x), "updated": stamp(e)}
    for entry in x.also:
        yield {**_state(entry), "updated": stamp(e)}


def _state(x: facts.BudgetChanged | facts.BudgetState) -> Row:
    return {
        "scope": x.scope,
        "name": x.name,
        "cap": None if x.cap is None else str(x.cap),
        "spent": str(x.spent),
        "reserved": str(sum(reservation.amount for reservation in x.open)),
        "open": as_json([reservation.model_dump() for reservation in x.open]),
        "level": x.level,
    }


def list_budgets(db: sqlite3.Connection, scope: str = "", name: str = "", limit: int = -1) -> list[Row]:
    """Budgets, those that changed last first. ``cap``, ``spent``, ``reserved`` in nano-dollars."""
    filters = {"scope": scope, "name": name}
    rows = find(db, "SELECT * FROM budgets", filters, "updated DESC, scope, name", limit, parse=("open",))
    return [row | {kind: _whole(row[kind]) for kind in ("cap", "spent", "reserved")} for row in rows]


def list_entries(db: sqlite3.Connection, scope: str, name: str, limit: int = -1) -> list[Row]:
    """Entries of one budget, newest first: its invoice. ``amount`` and ``spent`` in nano-dollars."""
    return select(db, _ENTRIES, (scope, name, limit))


_FIELDS = """
       json_extract(body, '$.data.provider') AS provider, json_extract(body, '$.data.model') AS model,
       json_extract(body, '$.data.prices') AS prices, json_extract(body, '$.data.reason') AS reason
"""
_ENTRIES = f"""
WITH own AS (
  SELECT seq, time, json_extract(body, '$.data.kind') AS kind, json_extract(body, '$.data.call') AS call,
         json_extract(body, '$.data.amount') AS amount, json_extract(body, '$.data.spent') AS spent, {_FIELDS}
  FROM events WHERE type = 'BudgetChanged' AND run = (SELECT token FROM budgets WHERE scope = ?1 AND name = ?2)
  ORDER BY seq DESC LIMIT ?3
), others AS (
  SELECT seq, time, json_extract(body, '$.data.kind') AS kind, json_extract(body, '$.data.call') AS call,
         json_extract(body, '$.data.amount') AS amount, json_extract(one.value, '$.spent') AS spent, {_FIELDS}
  FROM events, json_each(body, '$.data.also') AS one
  WHERE events.type = 'BudgetChanged' AND seq > (SELECT min(seq) FROM own)
    AND json_extract(one.value, '$.scope') = ?1 AND json_extract(one.value, '$.name') = ?2
)
SELECT * FROM own UNION ALL SELECT * FROM others ORDER BY seq DESC LIMIT ?3
"""  # noqa: S608 - names, never data


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)
