"""Flags of commands that read a file of questions."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.errors import ConfigError

Columns = Annotated[
    str,
    typer.Option(metavar="WHAT=COLUMN,…", help="Its columns: question, answer, id, tests, tolerance, kind or level."),
]
Tolerance = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="By how much a number may differ from its answer: 0.01, or 1%.")
]
Heldout = Annotated[
    Path | None,
    typer.Option("--held-out", metavar="FILE", help="The held-out questions; what repeats them is not trained on."),
]


def question_settings(file: Path | None, heldout: Path | None, columns: str, tolerance: str | None) -> dict[str, Any]:
    """The settings that the flags of a file of questions stand for, dots as ``__``.

    Raises:
        ConfigError: a part of ``columns`` has no ``=``.
    """
    return {
        "run__questions__file": file,
        "run__questions__heldout": heldout,
        "run__questions__columns": _pairs(columns),
        "run__questions__tolerance": tolerance,
    }


def _pairs(text: str) -> str | None:
    """``question=Q,answer=A`` as a JSON object; None where nothing is named."""
    parts = [part for part in text.split(",") if part.strip()]
    if bare := next((part for part in parts if "=" not in part), None):
        raise ConfigError(f"--columns {bare!r} has no '='.", "", "Write: --columns question=Q,answer=A")
    pairs = (part.partition("=") for part in parts)
    return json.dumps({role.strip(): column.strip() for role, _, column in pairs}) if parts else None
