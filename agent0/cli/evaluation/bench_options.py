"""What verbs of ``agent0 bench`` take alike: the folder of the rows, and the student that flags name."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.cli import console
from agent0.cli.models.named_model import model_flags, packaged_name
from agent0.config.catalogue import catalogue
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError
from agent0.settings import Settings

Data = Annotated[Path, typer.Option(envvar="AGENT0_BENCHMARKS", help="Folder with the rows.")]
HERE = Path("benchmarks-data")
ONE_MODEL = {"tiny": "It is one model, packaged with Agent0.", "scripted": "It replays references."}
"""Providers that have no other model to be named, and why."""


def student(provider: str | None, model: str | None, profile: str | None, pairs: list[str] | None) -> Settings:
    """Settings with the student that flags name.

    Raises:
        ConfigError: a model is named of a provider that has just one.
    """
    settings = console.settings(profile, pairs, plugins=None, **model_flags(model, provider, "student"))
    if model and not packaged_name(model) and (why := ONE_MODEL.get(settings.run.student.provider)):
        stored = "Name one that is stored (agent0 model list --available), or a provider: --provider transformers"
        fix = nearest(model, [*catalogue()]) or stored
        raise ConfigError(f"The provider {settings.run.student.provider} knows no model {model[:80]!r}.", why, fix)
    return settings
