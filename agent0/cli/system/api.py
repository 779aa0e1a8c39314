"""The API of `agent0 up`: its keys, and its description."""

from dataclasses import asdict
from typing import Annotated, Literal

import typer

from agent0.api.admission.keys import KeyFile
from agent0.cli import console, flags

Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, or what for.")]


def add(
    name: Name,
    scope: Annotated[
        Literal["read", "submit", "admin"],
        typer.Option(help="read: look; submit: also start runs and chat; admin: everything."),
    ] = "read",
    as_json: console.Json = False,
) -> None:
    """Make a key and print it, once: the data folder keeps only its digest. From then on each request needs a key."""
    text = KeyFile(flags.settings().home).add(name, scope)
    if as_json:
        console.data({"name": name, "scope": scope, "key": text})
        return
    console.text(text)
    console.say("It is shown this once. Send it as: Authorization: Bearer KEY")


def list_(as_json: console.Json = False) -> None:
    """The names of all keys, what they may do, and when they were made."""
    rows = [asdict(key) for key in KeyFile(flags.settings().home).read()]
    console.table([{name: row[name] for name in ("name", "scope", "created")} for row in rows], as_json)


def remove(name: Name, as_json: console.Json = False) -> None:
    """Forget a key: whoever has it is refused from now on."""
    KeyFile(flags.settings().home).remove(name)
    console.record({"removed": name}, as_json)
