"""How a question was routed: a query on the log's events; there is no table of its own."""

import sqlite3

from agent0.errors import NotFoundError
from agent0.projections.base import Row, select

_ROUTED = """
SELECT seq, run, task, attempt, json_extract(body, '$.data') AS data FROM events
WHERE type = 'CallRouted' AND json_extract(body, '$.data.route') LIKE ? || '%' ORDER BY seq LIMIT 1
"""
_CALLS = """
SELECT seq, time, json_extract(body, '$.data.provider') || '/' || json_extract(body, '$.data.requested_model') AS model,
       json_extract(body, '$.data.model') AS served, json_extract(body, '$.data.retries') AS retries,
       json_extract(body, '$.data.cache') AS cache, json_extract(body, '$.data.cost') AS cost,
       json_extract(body, '$.data.prices') AS prices, json_extract(body, '$.data.error') AS error,
       json_extract(body, '$.data.reason') AS reason, json_extract(body, '$.data.route') AS route
FROM events WHERE type = 'ModelCalled' AND json_extract(body, '$.data.route') LIKE ? || '%' ORDER BY seq LIMIT 200
"""


def show_route(db: sqlite3.Connection, route: str) -> Row:
    """One question by its route, or the beginning of it: the strategy's decision, where one chose, and each call.

    Raises:
        NotFoundError: nothing has this route.
    """
    calls = select(db, _CALLS, (route,))
    decided = select(db, _ROUTED, (route,), parse=("data",))
    if not calls and not decided:
        raise NotFoundError(
            f"No call has the route {route}.", fix="The events ModelCalled and CallRouted have one: agent0 events"
        )
    head = {"route": decided[0]["data"]["route"] if decided else calls[0]["route"]}
    attempt_key = {name: decided[0][name] for name in ("run", "task", "attempt")} if decided else {}
    data = {key: value for key, value in decided[0]["data"].items() if key not in head | attempt_key} if decided else {}
    return head | attempt_key | data | {"calls": [row for row in calls if row.pop("route") == head["route"]]}
