"""Whether the tables are behind the log for longer than a moment, so that pages can say so."""

import asyncio

from agent0.api.context import ApiContext
from agent0.errors import Agent0Error
from agent0.infra.log.event_log import Log

LOOK_S = 2.0
"""Seconds between two looks. Events that stood in the log at the one before and are not in the tables are late."""


async def watch_lag(context: ApiContext) -> None:
    """Keep ``context.behind``, how far the tables are behind the log, until cancelled."""
    log, before = context.require_log(), 0
    while True:
        before = await look(context, log, before)
        await asyncio.sleep(LOOK_S)


async def look(context: ApiContext, log: Log, before: int) -> int:
    """Note how many events up to ``before``, the log's end at the last look, the tables lack; returns its end now."""
    try:
        end = await log.last_seq()
        tables_end = await context.end()
    except Agent0Error:  # the log or the tables are away: requests say so themselves
        return 0
    context.behind = max(0, before - tables_end)
    return end
