"""Backups of a live log."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.assembly.log.backup import back_up, restore_backup
from agent0.cli import console, flags


def backup(
    path: Annotated[
        Path, typer.Argument(callback=console.in_folder, help="A new folder, or a new file that ends in .tar.")
    ],
    profile: console.Profile = None,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Write the log up to its last event, its artifacts and the settings without keys; runs go on meanwhile."""
    settings = flags.settings(profile, pairs)
    console.record(console.run_async(lambda: back_up(settings, path)), as_json)


def restore(
    path: Annotated[Path, typer.Argument(help="A backup, or an archive of `agent0 events export`.")],
    profile: console.Profile = None,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Make the log of an empty data folder, or of servers without one, from a backup, and its tables: the numbers and
    digests are as before. On servers a cut try goes on."""
    settings = flags.settings(profile, pairs)
    console.record(console.run_async(lambda: restore_backup(settings, path)), as_json)
