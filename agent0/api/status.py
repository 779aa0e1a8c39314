"""How a data folder fares, in one object: ``agent0 status`` prints it and the server sends it."""

from collections.abc import Container
from dataclasses import asdict

from agent0.assembly.log.carriers import carriers
from agent0.assembly.log.integrity import topology
from agent0.assembly.log.waits import waits
from agent0.assembly.runtime.plugins import known_handlers
from agent0.assembly.runtime.read_models import NothingError, live_path, reading, reading_log
from agent0.config.distribution import installed_version
from agent0.errors import Agent0Error
from agent0.infra.log import server_proof
from agent0.infra.log.event_log import Log
from agent0.infra.log.streams import standing, stream_rows
from agent0.projections import position
from agent0.projections.alarms import list_alarms
from agent0.projections.base import Row
from agent0.projections.failures import list_failures
from agent0.projections.runs import list_runs, under_way
from agent0.settings import Settings

ALL = -1


async def status(settings: Settings, log: Log | None = None) -> Row:
    """Say what stands and works: the ``log`` and its end, the ``tables`` and how far they are behind (``lag``; None
    where the log is at rest or does not answer), processes that execute runs, runs and attempts under way, failures,
    alarms and what runs wait for. No server is started for it.
    """
    tables, log_state = _tables(settings), await _log(settings, log)
    end = log_state.get("last")
    processes = carriers(settings)
    return {
        "version": installed_version(),
        "home": str(settings.home),
        "log": log_state,
        "tables": tables["seq"],
        "lag": None if end is None or tables["seq"] is None else max(0, end - tables["seq"]),
        "processes": None if processes is None else [vars(process) for process in processes],
        **{name: value for name, value in tables.items() if name != "seq"},
    }


async def consumers(settings: Settings, log: Log, runs: Container[str] | None = None) -> list[Row]:
    """How each handler's durable consumers stand: of ``runs`` where they are named.

    Raises:
        DependencyError: the log does not answer.
    """
    rows = await standing(log.client, topology(settings), known_handlers().values(), runs)
    return [asdict(row) for row in rows]


async def streams(settings: Settings, log: Log) -> list[Row]:
    """How each stream of the log stands; errors as for ``consumers``."""
    return [asdict(row) for row in await stream_rows(log.client, topology(settings))]


def _tables(settings: Settings) -> Row:
    if not live_path(settings).exists():
        return {"seq": None, "runs": 0, "running": 0, "attempts": 0, "failures": 0, "alarms": 0, "waits_for": ""}
    with reading(settings) as db:
        running, attempts = under_way(db)
        rows = list_runs(db, ALL)
        waiting = [f"{row['run']}: {row['waits_for']}" for row in rows if row["waits_for"]]
        return {
            "seq": position(db).seq,
            "runs": len(rows),
            "running": running,
            "attempts": attempts,
            "failures": len(list_failures(db, limit=ALL)),
            "alarms": len(list_alarms(db, limit=ALL)),
            "waits_for": "; ".join(waiting) or (running and waits(settings.home)) or "",
        }


async def _log(settings: Settings, log: Log | None) -> Row:
    """``state``: answers, at rest (its server is not running) or unreachable, with the reason."""
    try:
        if log is not None:
            return await _extent(log)
        if not settings.nats.url and not server_proof.running_pid(settings.home / "nats"):
            return {"state": "at rest"}
        async with reading_log(settings) as opened:
            return await _extent(opened)
    except NothingError:
        return {"state": "at rest"}
    except Agent0Error as error:
        return {"state": "unreachable", "why": str(error)}


async def _extent(log: Log) -> Row:
    info = await log.info()
    extent = {"first": info.first_seq, "last": info.last_seq, "bytes": info.bytes, "max_bytes": info.max_bytes}
    return {"state": "answers", **extent}
