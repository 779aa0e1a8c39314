"""How tools are used, as a table that moves: read from the read models while a projector carries them on."""

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from rich.live import Live
from rich.text import Text

from agent0.assembly.runtime.read_models import catch_up, reading, reading_log, run_projector
from agent0.assembly.runtime.stamping import utc_now
from agent0.cli import console
from agent0.cli.layout import table_lines
from agent0.projections.base import stamp
from agent0.projections.runs import resolve, under_way
from agent0.projections.tool_calls import recent_calls
from agent0.projections.tool_usage import summary, usage
from agent0.settings import Settings

MINUTE_S = 60.0
COLUMNS = ("tool", "calls", "per_min", "p50_ms", "p95_ms", "p99_ms", "limits", "kills", "refused", "busy", "cached")


def look(db: sqlite3.Connection, run: str = "") -> dict[str, Any]:
    """Every tool that was called: a summary and its calls of the last minute; besides, what is under way."""
    name = resolve(db, run) if run else ""
    recent = recent_calls(db, stamp(utc_now() - timedelta(seconds=MINUTE_S)), name)
    tools = [{**summary(tool, rows), "per_min": recent.get(tool, 0)} for tool, rows in usage(db, name).items()]
    running, attempts = under_way(db, name)
    return {"runs": running, "attempts_under_way": attempts, "tools": [_ordered(row) for row in tools]}


def _ordered(row: dict[str, Any]) -> dict[str, Any]:
    return {**{name: row[name] for name in COLUMNS}, **row}


Look = Callable[[sqlite3.Connection, str], dict[str, Any]]


async def watch(settings: Settings, run: str, every_s: float, look: Look = look) -> None:
    """Show what ``look`` sees again and again, until cancelled.

    Raises:
        NotFoundError: there is no run yet.
    """
    async with reading_log(settings) as log, asyncio.TaskGroup() as group:
        await catch_up(settings, log)
        group.create_task(run_projector(settings, log))
        with Live(console=console.console(), auto_refresh=False, screen=False) as live:
            while True:
                with reading(settings) as db:
                    live.update(_drawn(look(db, run)), refresh=True)
                await asyncio.sleep(every_s)


def _drawn(view: dict[str, Any]) -> Text:
    title = f"{view['attempts_under_way']} attempts under way in {view['runs']} running runs"
    return Text("\n".join([title, *table_lines(view["tools"], COLUMNS, console.screen())]), no_wrap=True)
