"""One row per experiment: what it computed again of which run, and the result."""

import sqlite3
from collections.abc import Iterator

from agent0.errors import NotFoundError
from agent0.events import experiments as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, as_json, find, projection, select, stamp

_PARSED = ("policy", "purged", "summary")


@projection(
    key=("experiment",),
    columns={
        "experiment": str,
        "name": str,
        "kind": str,
        "source": str,
        "run": str,
        "until": int,
        "policy": str,
        "policy_sha": str,
        "purged": str,
        "events": int,
        "failed": int,
        "sha256": str,
        "summary": str,
        "started": str,
        "finished": str,
    },
    events=(facts.ExperimentStarted, facts.ExperimentFinished),
    computed={"status": "CASE WHEN finished IS NULL THEN 'unfinished' ELSE 'finished' END"},
)
def experiments(e: Recorded) -> Iterator[Row]:
    """It counts from its closing event; ``failed`` are events at which something could not be computed."""
    match e.event:
        case facts.ExperimentStarted() as x:
            request = x.model_dump(include={"name", "kind", "source", "run", "until", "policy_sha"})
            lists = {"policy": as_json(x.policy), "purged": as_json(x.purged)}
            yield {"experiment": e.run, **request, **lists, "started": stamp(e)}
        case facts.ExperimentFinished() as x:
            fields = x.model_dump(include={"events", "failed", "sha256"})
            yield {"experiment": e.run, **fields, "summary": as_json(x.summary), "finished": stamp(e)}


def list_experiments(db: sqlite3.Connection, run: str = "", limit: int = 100) -> list[Row]:
    """Experiments, newest first; those of one run where it is named."""
    sql = "SELECT experiment, kind, source, run, until, status, events, failed, started, finished FROM experiments"
    return find(db, sql, {"run": run}, "started DESC", limit)


def show_experiment(db: sqlite3.Connection, experiment: str) -> Row:
    """One with everything it asked and found.

    Raises:
        NotFoundError: there is none of this name.
    """
    name = f"{facts.PREFIX}{experiment.removeprefix(facts.PREFIX)}"
    rows = select(db, "SELECT * FROM experiments WHERE experiment = ?", (name,), parse=_PARSED)
    if not rows:
        raise NotFoundError(f"There is no experiment {experiment!r}.", fix="See: agent0 experiment list")
    return rows[0]
