"""The catalogue of models, one TOML file each in ``models/``, and those of them that the data folder has."""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent0.errors import ConfigError
from agent0.settings.catalogue import CatalogueModel

MODELS = Path(__file__).parent / "models"
NOTE = "stored.json"
OWN, SERVED = "transformers", "llamacpp"
"""The provider of our own engine, and that of llama.cpp's server, which takes any GGUF file."""
WIDENED = 4
"""How many times as large as a file in four bits its weights in 16 are, at most."""


def serving_provider(packed: bool, size: int) -> tuple[str, str]:
    """The provider of a GGUF file of ``size`` bytes that is named without one, and why. ``packed``: whether our own
    engine computes the model with its matrices packed, which is the quicker way (``CatalogueModel``)."""
    if not (find_spec("xllamacpp") and find_spec("openai")):
        return OWN, "llama.cpp's package is not installed"
    if not packed:
        return SERVED, "our own engine does not pack its matrices"
    if WIDENED * size > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2:
        return SERVED, "its weights in 16 bits may take more than half of the memory"
    return OWN, "our own engine is quicker than llama.cpp"


@dataclass(frozen=True)
class StoredModel:
    """A model in the data folder: its file, what that was when it was stored, and where it came from. ``problem``:
    what is wrong with it now."""

    name: str
    file: Path
    sha256: str
    bytes: int
    licence: str
    source: str
    problem: str = ""


@cache
def catalogue() -> Mapping[str, CatalogueModel]:
    """Every model that can be had by name, in the order of their files' names."""
    return {path.stem: read_entry(path) for path in sorted(MODELS.glob("*.toml"))}


@cache
def catalogue_model(name: str) -> CatalogueModel | None:
    """The entry ``name``; None where the catalogue has none."""
    path = MODELS / f"{name}.toml"
    return read_entry(path) if path.parent == MODELS and path.is_file() else None


def read_entry(path: Path) -> CatalogueModel:
    """The entry in the TOML file ``path``, which has the name of its model.

    Raises:
        ConfigError: it is none.
    """
    try:
        entry = CatalogueModel.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, ValidationError, OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no entry of the catalogue.", f"{error}"[:300], "Copy a neighbour.") from error
    if entry.name != path.stem:
        raise ConfigError(f"{path} is no entry of the catalogue.", f"Its name is {entry.name}.", "Rename the file.")
    return entry


def store_of(home: Path) -> Path:
    """The folder of stored models in the data folder ``home``."""
    return home / "cache" / "models"


def stored_models(home: Path) -> dict[str, StoredModel]:
    """The models that the data folder ``home`` has, by name."""
    folders = sorted(path for path in store_of(home).glob("[!.]*") if path.is_dir())
    return {folder.name: _stored(folder) for folder in folders}


def stored_model(home: Path, name: str) -> StoredModel | None:
    """The model ``name`` in the data folder ``home``; None where it is not there."""
    folder = store_of(home) / name
    return _stored(folder) if folder.is_dir() else None


def _stored(folder: Path) -> StoredModel:
    try:
        note = json.loads((folder / NOTE).read_bytes())
        file = folder / str(note["file"])
        size = file.stat().st_size if file.is_file() else 0
        problem = "" if size == note["bytes"] else f"It has {size:,} bytes, and had {note['bytes']:,}."
        texts = {key: str(note[key]) for key in ("sha256", "licence", "source")}
        return StoredModel(folder.name, file, bytes=int(note["bytes"]), problem=problem, **texts)
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"{folder / NOTE} cannot be read: {type(error).__name__}."
        return StoredModel(folder.name, folder, "", 0, "", "", problem)


def place_models(tree: Mapping[str, Any], ranks: Mapping[str, int], home: Path) -> dict[str, str]:
    """Replace the name of a catalogue model by its stored file, and take the entry's provider, form of calls and limits
    as defaults of that role. Returns the origin of each value, by key, but of the name itself."""
    origins: dict[str, str] = {}
    for role in ("student", "teacher"):
        actor = tree.get("run", {}).get(role, {})
        entry = catalogue_model(str(actor.get("model", "")))
        rank = ranks.get(f"run.{role}.model")
        if entry is None or rank is None:
            continue
        stored = stored_model(home, entry.name)
        provider, _ = serving_provider(entry.packed, stored.bytes if stored else entry.bytes)
        suits = {"provider": provider} | ({"tool_form": entry.tool_form} if role == "student" else {})
        prompts = entry.teacher_prompts if role == "teacher" else "full"
        unset = {"prompts": prompts, "max_tokens": entry.max_tokens, "num_ctx": entry.num_ctx}
        placed = {
            **{key: value for key, value in suits.items() if ranks.get(f"run.{role}.{key}", rank + 1) > rank},
            **{key: value for key, value in unset.items() if f"run.{role}.{key}" not in ranks},
        }
        actor |= placed
        origins |= {f"run.{role}.{key}": f"model {entry.name}" for key in placed}
        if stored and not stored.problem and actor["provider"] in (OWN, SERVED):
            actor["model"] = str(stored.file)
    return origins
