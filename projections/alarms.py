"""One row per alarm, including unavailable dependencies."""

import sqlite3
from collections.abc import Iterator

from agent0.events import alarms as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, as_json, find, projection, stamp


@projection(
    key=("run", "alarm"),
    columns={
        "run": str,
        "alarm": str,
        "status": str,
        "severity": str,
        "message": str,
        "facts": str,
        "times": int,
        "raised": str,
        "resolved": str,
    },
    events=(facts.AlarmRaised, facts.AlarmResolved, facts.DependencyLost, facts.DependencyRestored),
    adds=("times",),
)
def alarms(e: Recorded) -> Iterator[Row]:
    """Alarms by name. ``status``: raised, resolved. An unavailable dependency is the alarm ``dependency/<name>/<who
    waits>``."""
    raised = {"status": "raised", "times": 1, "raised": stamp(e), "resolved": None}
    resolved = {"status": "resolved", "resolved": stamp(e)}
    match e.event:
        case facts.AlarmRaised() as x:
            fields = {"severity": x.severity, "message": x.message, "facts": as_json(x.facts)}
            yield {"run": e.run, "alarm": x.alarm, **fields, **raised}
        case facts.AlarmResolved() as x:
            yield {"run": e.run, "alarm": x.alarm, **resolved}
        case facts.DependencyLost() as x:
            fields = {"severity": "warning", "message": f"{x.waiting} waits for {x.dependency}: {x.message}"}
            yield {"run": e.run, "alarm": f"dependency/{x.dependency}/{x.waiting}", **fields, **raised}
        case facts.DependencyRestored() as x:
            yield {"run": e.run, "alarm": f"dependency/{x.dependency}/{x.waiting}", **resolved}


def list_alarms(db: sqlite3.Connection, run: str = "", status: str = "raised", limit: int = 100) -> list[Row]:
    """Alarms, newest first; every status where ``status`` is empty. ``seq``: the event that raised it last. A run that
    failed, and was not resumed since, is one more: ``run-failed``."""
    filters = {"run": run, "status": status}
    return find(db, _ALARMS, filters, "raised DESC, alarm", limit, parse=("facts",))


_ALARMS = """
SELECT * FROM (
    SELECT alarms.*, (
        SELECT max(seq) FROM events WHERE events.run = alarms.run AND events.task = '-' AND (
            (type = 'AlarmRaised' AND json_extract(body, '$.data.alarm') = alarm) OR (type = 'DependencyLost' AND
            'dependency/' || json_extract(body, '$.data.dependency') || '/' || json_extract(body, '$.data.waiting')
            = alarm))) AS seq FROM alarms
    UNION ALL
    SELECT runs.run, 'run-failed', 'raised', 'critical', failed, NULL, 1, max(time), NULL, max(seq)
    FROM runs JOIN events ON events.run = runs.run AND task = '-' AND type = 'RunFailed'
    WHERE runs.status = 'failed' GROUP BY runs.run
)
"""
