"""Flags of commands that read a file of questions."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.runtime.providers import providers
from agent0.cli.models.named_model import model_flags
from agent0.config.catalogue import OWN
from agent0.errors import ConfigError
from agent0.events.values import JUDGED
from agent0.settings import QuestionsConfig

Columns = Annotated[
    str,
    typer.Option(
        metavar="WHAT=COLUMN,…",
        help="Its columns: question, answer, id, tests, tolerance, kind, level, domain or tools.",
    ),
]
Tolerance = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="By how much a number may differ from its answer: 0.01, or 1%.")
]
AnswerType = Annotated[
    str | None, typer.Option(metavar="KIND", help="How answers are compared where a row does not say: value, choice …")
]
Heldout = Annotated[
    Path | None,
    typer.Option("--held-out", metavar="FILE", help="The held-out questions; what repeats them is not trained on."),
]

Template = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A Jinja template that makes the question of a row's columns.")
]


Judge = Annotated[
    str | None,
    typer.Option(
        metavar="[PROVIDER/]MODEL", help="Judges answers that are free text; its verdicts say whose they are."
    ),
]


def question_settings(
    file: Path | None,
    heldout: Path | None,
    columns: str,
    tolerance: str | None,
    answer_type: str | None,
    template: Path | None,
    documents: Path | None = None,
    judge: str | None = None,
) -> dict[str, Any]:
    """The settings that the flags of a file of questions, or a folder of documents, stand for, dots as ``__``.

    Raises:
        ConfigError: a part of ``columns`` has no ``=``, or the template cannot be read.
    """
    return {
        "run__questions__file": file,
        "run__questions__heldout": heldout,
        "run__questions__columns": _pairs(columns),
        "run__questions__tolerance": tolerance,
        "run__questions__kind": answer_type or (JUDGED if judge else None),
        "run__questions__template": _text(template) if template else None,
        "run__documents__folder": documents,
        **(_judge_settings(judge) if judge else {}),
    }


def require_file(
    plan: QuestionsConfig, columns: str, tolerance: str | None, answer_type: str | None, template: Path | None
) -> None:
    """Raises ConfigError for a flag about a file of questions where ``plan`` names none, by flag or setting."""
    flags = {"--columns": columns, "--tolerance": tolerance, "--answer-type": answer_type, "--template": template}
    for flag, value in flags.items() if not (plan.file or plan.heldout) else ():
        if value:
            raise ConfigError(f"{flag} is about a file of questions.", "None is named.", "Name it: --questions FILE")


def _judge_settings(judge: str) -> dict[str, str | None]:
    """The settings of a judge that is named as ``PROVIDER/MODEL``, or as ``--model`` names one."""
    provider, slash, name = judge.partition("/")
    if slash and provider in providers():
        named = model_flags(name, provider, "verification__judge")
    else:
        named = {"run__verification__judge__provider": OWN, "run__verification__judge__model": judge}
        named |= {
            key: value for key, value in model_flags(judge, None, "verification__judge").items() if value is not None
        }
    return named


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The template {file} cannot be read.", f"{error}.", "Name another: --template FILE"
        ) from error


def _pairs(text: str) -> str | None:
    """``question=Q,answer=A`` as a JSON object; None where nothing is named."""
    parts = [part for part in text.split(",") if part.strip()]
    if bare := next((part for part in parts if "=" not in part), None):
        raise ConfigError(f"--columns {bare!r} has no '='.", "", "Write: --columns question=Q,answer=A")
    pairs = (part.partition("=") for part in parts)
    return json.dumps({role.strip(): column.strip() for role, _, column in pairs}) if parts else None
