"""One command for everything: the log, the handlers, the tables, the API and the pages."""

from typing import Annotated

import typer

from agent0.api.server import up as stand
from agent0.cli import console, flags

Port = Annotated[int | None, typer.Option(min=0, max=65535, help="Port; 0 takes a free one. Setting: api.port.")]
Host = Annotated[str | None, typer.Option(help="Address to listen on; any but a loopback one needs a key.")]


def up(
    port: Port = None,
    host: Host = None,
    profile: console.Profile = None,
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    no_handlers: Annotated[bool, typer.Option("--no-handlers", help="Other processes run the handlers.")] = False,
) -> None:
    """Open the runs of the data folder in a browser, and execute them: server of the log, handlers, tables, API and
    pages in one process. Ctrl-C stops cleanly; nothing is lost."""
    settings = flags.settings(profile, pairs, plugins=plugin, api__port=port, api__host=host)

    def say(address: str) -> None:
        console.text(address)
        console.say("Runs, pages and API are there. Ctrl-C stops.")

    console.run_async(lambda: stand(settings, say, handlers=not no_handlers), STOPPING)


STOPPING = "Stopping: finishing what is in hand (again: at once)."
