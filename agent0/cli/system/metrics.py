"""Metrics for Prometheus, once or served."""

from typing import Annotated

import typer

from agent0.assembly.runtime.prometheus import exposition, serving
from agent0.assembly.runtime.read_models import reading_log, run_projector
from agent0.cli import console, flags, lookup
from agent0.settings import Settings


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
    """Serve the metrics over HTTP and keep the tables up to date meanwhile, until stopped."""
    settings = flags.settings(profile, pairs)
    console.run_async(lambda: _serve(settings, host, port))


async def _serve(settings: Settings, host: str, port: int) -> None:
    async with reading_log(settings) as log:
        with serving(settings, host, port) as address:
            console.say(f"Metrics at http://{address}/metrics. Ctrl-C stops.")
            await run_projector(settings, log)
