"""Keys of a log that several hosts share."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.cli import console
from agent0.errors import RequirementsError


def keys(
    folder: Annotated[
        Path, typer.Argument(callback=console.in_folder, help="A new folder; with --rotate one that has keys.")
    ],
    host: Annotated[
        list[str] | None, typer.Option("--host", help="A name or address of the servers, as clients use it.")
    ] = None,
    at: Annotated[
        str, typer.Option("--at", metavar="PATH", help="Where hosts find their folder; empty: where it is made.")
    ] = "",
    rotate: Annotated[
        list[str] | None,
        typer.Option("--rotate", metavar="ROLE", help="Replace the key of a role, or of `server` its certificate."),
    ] = None,
) -> None:
    """Make TLS and users for the log's servers: a folder for the servers, and one for the hosts of each role, whose
    user may do what that role does and no more. A replaced key is accepted until the next rotation."""
    try:
        from agent0.infra.log.users import keys as key_files  # noqa: PLC0415 - of an extra
    except ModuleNotFoundError as error:
        fix = 'Install what hosts that share a log need: pip install "agent0-train[cluster]"'
        raise RequirementsError(f"{error.name} is not installed.", fix=fix) from error
    if rotate:
        key_files.rotate_keys(folder, rotate, host or ())
        console.say(f"Replaced: {', '.join(rotate)}. Servers first: copy {folder / 'server'} to each and reload it")
        console.say("(nats-server --signal reload); then the folders of the roles, and start those processes again.")
        return
    key_files.make_keys(folder, host or (), at)
    console.say(f"Made {folder}. Servers get {folder / 'server'}, hosts the folder of their role; ca stays here.")
    console.say("A process reads its settings from agent0.env in that folder; `agent0 log init` works as admin.")
