"""Part of the rim: the adapter that a new run's student begins with, from a folder of peft's."""

from dataclasses import dataclass
from pathlib import Path

from agent0.assembly.runtime.providers import provider_of
from agent0.errors import ConfigError
from agent0.events.values import Artifact
from agent0.infra.engine.adapter import MEDIA
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.weights.peft_folder import read_peft_folder
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
    student, recipe = settings.run.student, settings.run.training.learning("student")
    provider, folder = provider_of(student), Path(path).expanduser().absolute()
    what = f"A run cannot begin with the adapter in {folder}."
    base = provider.folder(student) if provider.folder else Path()
    if base == Path() or not any(base.glob("*.safetensors")):
        why = f"The weights of the student's model (provider {provider.name}) are not on this machine."
        raise ConfigError(what, why, "Name a student whose weights are: --model FOLDER, or run.student.tokenizer.")
    if recipe and recipe.rank == 0:
        why = "run.training.student.rank = 0 trains all weights, and this is a LoRA."
        raise ConfigError(what, why, "Set run.training.student.rank to 16.")
    read = read_peft_folder(folder, base)
    adapter = FileArtifacts(settings.home).put(read.data, MEDIA)
    line = f"The student begins with the adapter in {folder} ({read}), sha256 {adapter.sha256[:12]}."
    return WarmStart(adapter, read.base, f"{line} Its training keeps that rank." if recipe else line)
