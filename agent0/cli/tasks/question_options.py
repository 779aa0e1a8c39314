"""Flags of commands that read a file of questions."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from agent0.errors import ConfigError

Columns = Annotated[
    str,
    typer.Option(metavar="WHAT=COLUMN,…", help="Its columns: question, answer, id, tests, tolerance, kind or level."),
]
Tolerance = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="By how much a number may differ from its answer: 0.01, or 1%.")
]


def columns_setting(text: str) -> str | None:
    """The value of ``run.questions.columns`` for ``question=Q,answer=A``; None where nothing is named.

    Raises:
        ConfigError: a part has no ``=``.
    """
    parts: Sequence[str] = [part for part in text.split(",") if part.strip()]
    if bare := next((part for part in parts if "=" not in part), None):
        raise ConfigError(f"--columns {bare!r} has no '='.", "", "Write: --columns question=Q,answer=A")
    pairs = (part.partition("=") for part in parts)
    return json.dumps({role.strip(): column.strip() for role, _, column in pairs}) if parts else None
