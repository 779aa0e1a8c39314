"""Metrics for Prometheus, once or served."""

import asyncio
from collections.abc import Container
from typing import Annotated

import typer

from agent0.api.status import consumers
from agent0.assembly.runtime.prometheus import exposition, serving
from agent0.assembly.runtime.read_models import reading_log, run_projector
from agent0.cli import console, flags, lookup
from agent0.projections.base import Row
from agent0.settings import Settings

ANSWER_S = 5.0
"""A scrape waits so long for the log; without its answer the work that waits is left out."""


def show() -> None:
    """Print tool calls, limits, kills, refusals, events, runs, failures and alarms; `agent0 metrics` does the same."""
    with lookup.tables():
        pass
    typer.echo(exposition(flags.settings()), nl=False)


def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 9464,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    profile: console.Profile = None,
    pairs: console.Set = None,
) -> None:
    """Serve the metrics over HTTP, with the work that waits for each handler, and keep the tables up to date
    meanwhile, until stopped."""
    settings = flags.settings(profile, pairs)
    console.run_async(lambda: _serve(settings, host, port))


async def _serve(settings: Settings, host: str, port: int) -> None:
    loop = asyncio.get_running_loop()
    async with reading_log(settings) as log:

        def waiting(runs: Container[str]) -> list[Row]:
            return asyncio.run_coroutine_threadsafe(consumers(settings, log, runs), loop).result(ANSWER_S)

        with serving(settings, host, port, waiting) as address:
            console.say(f"Metrics at http://{address}/metrics. Ctrl-C stops.")
            await run_projector(settings, log)
