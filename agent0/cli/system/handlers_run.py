"""Handlers, run as a process."""

from typing import Annotated

import typer

from agent0.assembly.runtime.app import open_app, run_handlers, until_cancelled
from agent0.assembly.runtime.read_models import run_projector
from agent0.cli import console, flags
from agent0.config.setting_entries import require_known
from agent0.infra.log.users.roles import ROLES


def run(
    names: Annotated[
        list[str] | None, typer.Argument(help="Handlers to run; none: all. See agent0 handlers list.")
    ] = None,
    role: Annotated[list[str] | None, typer.Option("--role", help=f"All handlers of it: {', '.join(ROLES)}.")] = None,
    slots: Annotated[int, typer.Option("--slots", min=0, help="Reactions at once; 0: each handler's own.")] = 0,
    profile: console.Profile = None,
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    projector: Annotated[bool, typer.Option("--projector", help="Keep the tables up to date, too.")] = False,
) -> None:
    """React to events until stopped. Several processes share the work; SIGTERM finishes what is in hand."""
    require_known("--role", role or (), ROLES)
    chosen = [*dict.fromkeys([name for one in role or () for name in ROLES[one]] + (names or []))]
    own = [f"handlers.in_flight={slots}"] if slots else []
    settings = flags.settings(profile, [*(pairs or []), *own], plugins=plugin)

    async def work() -> None:
        async with open_app(settings, chosen) as app:
            console.say(f"Handlers {', '.join(app.handlers)} at work. Ctrl-C stops them.")
            extra = [run_projector(settings, app.log)] if projector else []
            await until_cancelled(run_handlers(app), *extra)

    console.run_async(work, "Stopping: finishing what is in hand (again: at once).")
