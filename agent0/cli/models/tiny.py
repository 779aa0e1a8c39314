"""The built-in small model: make it again, read its card."""

import json
from typing import Annotated, Literal

import typer

from agent0.cli import console
from agent0.infra.models.transformers import packaged

Packaged = Literal["tools", "climb", "climb_teacher", "long"]


def card(
    course: Annotated[Packaged, typer.Option(help="Which of the packaged models.")] = "tools",
    as_json: console.Json = False,
) -> None:
    """A packaged model's card: what it is, what it is not, how it was made."""
    base = packaged(course)
    if as_json:
        console.data(json.loads((base / "provenance.json").read_text(encoding="utf-8")))
    else:
        console.document((base / "README.md").read_text(encoding="utf-8"))
