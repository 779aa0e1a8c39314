"""Look at a data folder, a run or an archive in a browser; nothing is written."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.api.server import archived, is_data_folder
from agent0.api.server import view as serve
from agent0.cli import console, flags, lookup
from agent0.cli.system.up import Host, Port
from agent0.settings import Settings


def view(
    target: Annotated[
        str, typer.Argument(metavar="[PATH|RUN]", help="A data folder, an archive of `events export`, or a run.")
    ] = "",
    port: Port = None,
    host: Host = None,
) -> None:
    """Open a data folder, one run or an exported archive in a browser, to read only: no server of a log is started,
    nothing is written."""
    settings, path = flags.settings(api__port=port, api__host=host), Path(target)
    if target and path.exists():
        console.run_async(lambda: _at(settings, path.absolute()))
        return
    page = f"/runs/{lookup.run_id(target, settings)}" if target else "/runs"
    console.run_async(lambda: _shown(settings, page))


async def _at(settings: Settings, path: Path) -> None:
    if is_data_folder(path):
        await _shown(settings.model_copy(update={"home": path}), "/runs")
        return
    console.say(f"Reading {path.name} …")
    async with archived(settings, path) as archive:
        await _shown(archive, "/runs")


async def _shown(settings: Settings, page: str) -> None:
    def say(address: str) -> None:
        console.text(address + page)
        console.say("To read only. Ctrl-C stops.")

    await serve(settings, say)
