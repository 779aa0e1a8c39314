"""Part of the rim: the adapter that a new run's student begins with, from a folder of peft's or of a checkpoint."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.models.students import adapter_of, student
from agent0.assembly.runtime.providers import provider_of
from agent0.errors import ConfigError, OperationError
from agent0.events.values import Artifact
from agent0.infra.engine.adapter import MEDIA
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.weights.peft_folder import read_fitting, read_peft_folder
from agent0.settings import Settings


@dataclass(frozen=True)
class WarmStart:
    """An ``adapter`` in the store, the sha256 of the weights that it is of, and a line on it."""

    adapter: Artifact
    base: str
    line: str


def warm_start(settings: Settings, path: str | Path | None) -> WarmStart | None:
    """Store the LoRA in the folder ``path`` for the student of a run of ``settings``, whose model is on this machine;
    None where none is named.

    Raises:
        ConfigError: the student's model has no weights here, or the folder holds no LoRA of them.
        DependencyError: the store cannot be written.
    """
    if path is None:
        return None
    folder = Path(path).expanduser().absolute()
    base = _base(settings, f"A run cannot begin with the adapter in {folder}.")
    read = read_peft_folder(folder, base)
    adapter = FileArtifacts(settings.home).put(read.data, MEDIA)
    line = f"The student begins with the adapter in {folder} ({read}), sha256 {adapter.sha256[:12]}."
    learns = settings.run.training.learning("student")
    return WarmStart(adapter, read.base, f"{line} Its training keeps that rank." if learns else line)


def warm_checkpoint(settings: Settings, db: sqlite3.Connection, reference: str) -> WarmStart:
    """The LoRA of a checkpoint that the store has, RUN/CHECKPOINT or its digest, for the student of a run of
    ``settings``.

    Raises:
        NotFoundError: there is none, or its weights are gone. OperationError: it is a teacher's.
        ConfigError: it has no LoRA, or one of another model than the student's.
    """
    run, row = student(db, reference)
    name = f"{run}/{row['checkpoint']}"
    what, store = f"A run cannot begin with the adapter of {name}.", artifact_store(settings)
    base = _base(settings, what)
    if (adapter := adapter_of(store, name, row)) is None:
        raise ConfigError(what, "It has none: nothing was trained in it.", "Name another, or none.")
    try:
        actual, _, _ = read_fitting(store.get(adapter), base)
    except OperationError as error:
        raise ConfigError(what, error.why, "Name one of the same model.") from error
    return WarmStart(adapter, actual, f"The student begins with {name}, sha256 {adapter.sha256[:12]}.")


def _base(settings: Settings, what: str) -> Path:
    """The folder of the weights of the student of ``settings``.

    Raises:
        ConfigError: ``what`` cannot be, since there is none, or all of them are trained.
    """
    actor, recipe = settings.run.student, settings.run.training.learning("student")
    provider = provider_of(actor)
    base = provider.folder(actor) if provider.folder else Path()
    if base == Path() or not any(base.glob("*.safetensors")):
        why = f"The weights of the student's model (provider {provider.name}) are not on this machine."
        raise ConfigError(what, why, "Name a student whose weights are: --model FOLDER, or run.student.tokenizer.")
    if recipe and recipe.rank == 0:
        why = "run.training.student.rank = 0 trains all weights, and this is a LoRA."
        raise ConfigError(what, why, "Set run.training.student.rank to 16.")
    return base
