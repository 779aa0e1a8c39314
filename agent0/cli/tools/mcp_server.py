"""What our MCP server offers: the tools of a student, each call in a sandbox of its own, and what is known of runs, to
read alone."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Mapping
from functools import partial

from agent0.assembly.runtime.read_models import live_path, reading, refresh
from agent0.assembly.tooling.tool_calls import ToolBench, ToolRequest
from agent0.errors import ConfigError
from agent0.infra.storage.sqlite import guarded_query
from agent0.ports.models import ToolSpec
from agent0.projections.runs import list_runs, show_run
from agent0.report.diagnosis.findings import diagnosis
from agent0.settings import Settings
from agent0.tools.definition import OfferedTool

Reading = Callable[[sqlite3.Connection, str], object]
_RUN = {"run": {"type": "string", "description": "id, name, or LAST"}}
_SQL = {"sql": {"type": "string", "description": "one SELECT"}}
_READINGS: Mapping[str, tuple[str, Reading]] = {
    "run_show": ("Everything about one run: status, settings, scores.", show_run),
    "run_why": ("Why a run went badly: the cause, what shows it, and the command that mends it.", diagnosis),
}


def offered_tools(settings: Settings, bench: ToolBench) -> list[OfferedTool]:
    """The student's tools that ``bench`` has, then those that read runs and tables."""
    calls = [
        OfferedTool(spec.name, spec.description, spec.parameters, partial(_called, bench, spec), reads=False)
        for spec in bench.specs(settings.run.student.tools)
    ]
    readings = [
        OfferedTool(name, description, _schema(_RUN), partial(_read, settings, show), reads=True)
        for name, (description, show) in _READINGS.items()
    ]
    runs = OfferedTool("run_list", "The newest 100 runs.", _schema({}), partial(_runs, settings), reads=True)
    about = "Rows of one SELECT over the tables; sqlite_master names them."
    query = OfferedTool("table_query", about, _schema(_SQL), partial(_queried, settings), reads=True)
    return [*calls, runs, *readings, query]


def _schema(properties: Mapping[str, object]) -> Mapping[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties)}


async def _called(bench: ToolBench, spec: ToolSpec, arguments: Mapping[str, object]) -> tuple[str, bool]:
    record = await bench.answer(ToolRequest(spec.name, args=arguments))
    return str(record["output"]), record["state"] != "ok"


async def _read(settings: Settings, show: Reading, arguments: Mapping[str, object]) -> tuple[str, bool]:
    run = _text(arguments, "run")
    await refresh(settings)
    with reading(settings) as db:
        return _json(show(db, run)), False


async def _runs(settings: Settings, _: Mapping[str, object]) -> tuple[str, bool]:
    await refresh(settings)
    with reading(settings) as db:
        return _json(list_runs(db)), False


async def _queried(settings: Settings, arguments: Mapping[str, object]) -> tuple[str, bool]:
    sql = _text(arguments, "sql")
    await refresh(settings)
    with reading(settings):  # refused in words where there are none yet
        return _json(await asyncio.to_thread(guarded_query, live_path(settings), sql)), False


def _text(arguments: Mapping[str, object], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} is no text.", "", f"Call it with {name} alone.")
    return value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
