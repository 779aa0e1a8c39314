"""Keys of a log that several hosts share."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.cli import console
from agent0.errors import RequirementsError

MADE = (
    "Hosts get the folder of their role; agent0.env in it is for the environment of a process, as by",
    "`set -a; . FILE` (systemd: EnvironmentFile=, Compose: env_file). `agent0 log init` works as admin.",
    "The folder ca stays here.",
)
REPLACED = (
    "Servers first: copy their folder to each and reload it (nats-server --signal reload); then the",
    "folders of the roles (new hosts are in the agent0.env of each), and start those processes again.",
)


def keys(
    folder: Annotated[
        Path, typer.Argument(callback=console.in_folder, help="A new folder; with --rotate one that has keys.")
    ],
    host: Annotated[
        list[str] | None,
        typer.Option("--host", help="A name or address of the servers, as clients use it."),
    ] = None,
    at: Annotated[
        str, typer.Option("--at", metavar="PATH", help="Where hosts find their folder; empty: where it is made.")
    ] = "",
    rotate: Annotated[
        list[str] | None,
        typer.Option("--rotate", metavar="ROLE", help="Replace the key of a role, or of `server` its certificate."),
    ] = None,
    as_json: console.Json = False,
) -> None:
    """Make TLS and users for the log's servers: a folder for the servers, and one for the hosts of each role, whose
    user may do what that role does and no more. A replaced key is accepted until its role's next rotation."""
    try:
        from agent0.infra.log.users import keys as key_files  # noqa: PLC0415 - of an extra
    except ModuleNotFoundError as error:
        fix = 'Install what hosts that share a log need: pip install "agent0-train[cluster]"'
        raise RequirementsError(f"{error.name} is not installed.", fix=fix) from error
    if rotate:
        key_files.rotate_keys(folder, rotate, host or ())
    else:
        key_files.make_keys(folder, host or (), at)
    facts = {"folder": str(folder), "servers": str(folder / "server"), "replaced": ", ".join(rotate or ())}
    console.record(facts, as_json)
    if as_json:
        return
    for line in REPLACED if rotate else MADE:
        console.say(line)
