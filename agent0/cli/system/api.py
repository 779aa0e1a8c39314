"""The API of `agent0 up`: its keys, and its description."""

from dataclasses import asdict
from typing import Annotated, Literal

import typer

from agent0.cli import console

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
    from agent0.api.admission.keys import KeyFile

    text = KeyFile(console.settings().home).add(name, scope)
    if as_json:
        console.data({"name": name, "scope": scope, "key": text})
        return
    console.text(text)
    console.say("It is shown this once. Send it as: Authorization: Bearer KEY")


def list_(as_json: console.Json = False) -> None:
    """The names of all keys, what they may do, and when they were made."""
    from agent0.api.admission.keys import KeyFile

    rows = [asdict(key) for key in KeyFile(console.settings().home).read()]
    console.table([{name: row[name] for name in ("name", "scope", "created")} for row in rows], as_json)


def remove(name: Name, as_json: console.Json = False) -> None:
    """Forget a key: whoever has it is refused from now on."""
    from agent0.api.admission.keys import KeyFile

    KeyFile(console.settings().home).remove(name)
    console.record({"removed": name}, as_json)


def openapi() -> None:
    """Print the description of the API as OpenAPI 3.1 in JSON."""
    from agent0.api.admission.keys import KeyFile
    from agent0.api.app import create_app
    from agent0.api.context import ApiContext
    from agent0.api.past import PastTables

    settings = console.settings()
    console.data(create_app(ApiContext(settings, KeyFile(settings.home), PastTables(settings))).openapi())
