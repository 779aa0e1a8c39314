"""What our MCP server offers: the tools of a student, each call in a sandbox of its own, and what is known of runs, of
tables and of Agent0 itself, to read alone: as tools, as resources, and in prompts that ask a model about runs."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from agent0.assembly.runtime.read_models import live_path, reading, refresh
from agent0.assembly.tooling.tool_calls import ToolBench, ToolRequest
from agent0.cli.system.docs_pages import DOCS, PAGES
from agent0.errors import ConfigError, NotFoundError
from agent0.infra.storage.sqlite import guarded_query
from agent0.ports.models import ToolSpec
from agent0.projections import tables
from agent0.projections.runs import list_runs, show_run
from agent0.report.diagnosis.findings import diagnosis
from agent0.settings import Settings
from agent0.tools.definition import OfferedPrompt, OfferedTool

Read = Callable[[Settings, Mapping[str, object]], Awaitable[str]]
_RUN = {"run": {"type": "string", "description": "id, name, or LAST"}}
_SQL = {"sql": {"type": "string", "description": "one SELECT"}}
_ASK_WHY = """\
Say why run {run} of Agent0 went as it did: the cause, the evidence for it, and the one command to do next. What is no
evidence below you do not know; the tools run_show and table_query have more.

Its diagnosis:
{why}
"""
_ASK_WHICH = """\
Say which of two runs of Agent0 is better, by which measures, whether that is more than chance, and in which settings
they differ. What is not below you do not know; the tools run_why and table_query have more.

{first}

{second}
"""
ROWS = 100
"""Rows of a table that is read whole."""


def offered_tools(settings: Settings, bench: ToolBench) -> list[OfferedTool]:
    """The student's tools that ``bench`` has, then those that read runs, tables and pages."""
    calls = [
        OfferedTool(spec.name, spec.description, spec.parameters, partial(_called, bench, spec), reads=False)
        for spec in bench.specs(settings.run.student.tools)
    ]
    return [*calls, *readings(settings)]


def readings(settings: Settings) -> list[OfferedTool]:
    """Tools that read the data folder of ``settings``, and the documentation; most of them are resources, too."""

    def reads(name: str, about: str, properties: Mapping[str, object], read: Read, uri: str = "") -> OfferedTool:
        async def answer(arguments: Mapping[str, object]) -> tuple[str, bool]:
            return await read(settings, arguments), False

        schema = {"type": "object", "properties": properties, "required": list(properties)}
        media = "text/markdown" if read is _page else "application/json"
        return OfferedTool(name, about, schema, answer, reads=True, uri=uri, media=media)

    table = {"table": {"type": "string", "enum": sorted(tables())}}
    page = {"page": {"type": "string", "enum": sorted(_pages())}}
    return [
        reads("run_list", "The newest 100 runs.", {}, _runs, "agent0://runs"),
        reads("run_show", "Everything about one run: status, settings, scores.", _RUN, _run, "agent0://runs/{run}"),
        reads("run_why", "Why a run went badly: cause, evidence, mend.", _RUN, _why, "agent0://runs/{run}/why"),
        reads("table_show", f"The first {ROWS} rows of a table.", table, _table, "agent0://tables/{table}"),
        reads("table_query", "Rows of one SELECT over the tables; sqlite_master names them.", _SQL, _queried),
        reads("doc_show", "A page of Agent0's documentation.", page, _page, "agent0://docs/{page}"),
    ]


def offered_prompts(settings: Settings) -> list[OfferedPrompt]:
    """Requests to a model about runs of the data folder of ``settings``, with what is known of them."""

    async def diagnose(arguments: Mapping[str, str]) -> str:
        return _ASK_WHY.format(run=arguments["run"], why=await _why(settings, arguments))

    async def compare(arguments: Mapping[str, str]) -> str:
        first, second = [await _run(settings, {"run": arguments[name]}) for name in ("first", "second")]
        return _ASK_WHICH.format(first=first, second=second)

    which = str(_RUN["run"]["description"])
    return [
        OfferedPrompt("diagnose_run", "Why a run went as it did.", {"run": which}, diagnose),
        OfferedPrompt("compare_runs", "Which of two runs is better.", {"first": which, "second": which}, compare),
    ]


async def _called(bench: ToolBench, spec: ToolSpec, arguments: Mapping[str, object]) -> tuple[str, bool]:
    record = await bench.answer(ToolRequest(spec.name, args=arguments))
    return str(record["output"]), record["state"] != "ok"


async def _runs(settings: Settings, _: Mapping[str, object]) -> str:
    await refresh(settings)
    with reading(settings) as db:
        return _json(list_runs(db))


async def _run(settings: Settings, arguments: Mapping[str, object]) -> str:
    run = _text(arguments, "run")
    await refresh(settings)
    with reading(settings) as db:
        return _json(show_run(db, run))


async def _why(settings: Settings, arguments: Mapping[str, object]) -> str:
    run = _text(arguments, "run")
    await refresh(settings)
    with reading(settings) as db:
        return _json(diagnosis(db, run))


async def _table(settings: Settings, arguments: Mapping[str, object]) -> str:
    table = _text(arguments, "table")
    if table not in tables():
        raise NotFoundError(f"There is no table {table[:80]!r}.", f"There are: {', '.join(sorted(tables()))}.")
    return await _queried(settings, {"sql": f'SELECT * FROM "{table}" LIMIT {ROWS}'})  # noqa: S608 - a name of ours


async def _queried(settings: Settings, arguments: Mapping[str, object]) -> str:
    sql = _text(arguments, "sql")
    await refresh(settings)
    with reading(settings):  # refused in words where there are none yet
        return _json(await asyncio.to_thread(guarded_query, live_path(settings), sql))


async def _page(_: Settings, arguments: Mapping[str, object]) -> str:
    name = _text(arguments, "page")
    if name not in (pages := _pages()):
        raise NotFoundError(f"There is no page {name[:80]!r}.", fix="The tool's schema and resources/list name them.")
    return await asyncio.to_thread(pages[name])


def _pages() -> Mapping[str, Callable[[], str]]:
    """The reference, which is made from the code, and in a checkout the written pages, by name."""
    reference = {f"reference/{name}": page for name, page in PAGES.items()}
    if not DOCS.with_name("pyproject.toml").exists():
        return reference
    written = {
        path.relative_to(DOCS).as_posix(): partial(path.read_text, encoding="utf-8") for path in DOCS.rglob("*.md")
    }
    return {**written, **reference}


def _text(arguments: Mapping[str, object], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} is no text.", "", f"Call it with {name} alone.")
    return value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
