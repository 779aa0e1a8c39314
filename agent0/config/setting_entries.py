"""Settings as somebody wrote them: entries of a key and a value, which are typed, put into tables and validated. Every
error names the place an entry was written at."""

import difflib
import json
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from agent0.config.catalogue import place_models
from agent0.errors import ConfigError, bare_address
from agent0.settings import RunConfig, Settings

PREFIX = "AGENT0_"
"""Begins the names of environment variables that are settings."""
SHOWN = 80
"""Characters of a refused value that an error repeats."""
KEY_NAME = "key_env"
"""Settings that end so name a variable; who writes the key itself there does not see it again."""
_quoted_name = re.compile(r"""(["'])(.+)\1(?:\.([^."']+))?""")


@dataclass(frozen=True)
class SettingEntry:
    """One setting as somebody wrote it: dotted ``key``, ``value`` (text where the source has no types), ``origin``."""

    key: str
    value: Any
    origin: str

    @property
    def is_text(self) -> bool:
        """Written where there are no types: a flag or an environment variable."""
        return isinstance(self.value, str)


def flags(overrides: Mapping[str, str]) -> list[SettingEntry]:
    """Entries of ``--set key=value`` and the flags that stand for one."""
    return [SettingEntry(key, value, f"flag {key}") for key, value in overrides.items()]


def amended(run: RunConfig, changes: Mapping[str, str], home: Path | None = None) -> RunConfig:
    """``run`` with ``changes`` (dotted key below ``run``, with or without it -> text), typed as any setting. ``{}``
    empties a table; any other table is added to it. ``home``: the data folder that models are named in.

    Raises:
        ConfigError: a key that is none, or a value that does not fit.
    """
    entries = flags({key if key.startswith("run.") else f"run.{key}": text for key, text in changes.items()})
    for entry in entries:
        check_key(entry)
    tree = planted(entries)
    emptied = tuple(f"{entry.key}." for entry in entries if _typed(entry) == {})
    for key, value in leaves(run.model_dump(mode="json"), "run."):
        if key.startswith(emptied):
            continue
        _plant(tree, _path(key), value, SettingEntry(key, value, "the parent run"))
    if home:
        place_models(tree, {entry.key: 0 for entry in entries}, home)
    return validated(tree, {entry.key: entry for entry in entries}).run


def check_key(entry: SettingEntry) -> None:
    """Require that there is such a setting, and that no secret is a flag.

    Raises:
        ConfigError: it is not so.
    """
    kind = _setting_type(entry.key)
    if kind is None:
        names = list(_fields_by_key())
        raise ConfigError(
            f"There is no setting {entry.key[:SHOWN]!r} ({entry.origin}).",
            nearest(entry.key, names),
            "All settings: agent0 config docs.",
        )
    if kind is SecretStr and entry.origin.startswith("flag "):
        raise ConfigError(
            f"{entry.key} is a secret and cannot be a flag.",
            "Flags are visible to every user of the machine.",
            f"Set {PREFIX}{entry.key.upper().replace('.', '__')} in the environment or in .env.",
        )


def is_secret(key: str) -> bool:
    """Whether the setting ``key`` holds a secret, whose value is never printed."""
    return _setting_type(key) is SecretStr


def _setting_type(key: str) -> Any:
    """The type of a setting; None where there is no such setting."""
    fields_by_key = _fields_by_key()
    if key in fields_by_key:
        return fields_by_key[key].annotation
    table, _, name = _entry_of(key)
    inner = get_args(fields_by_key[table].annotation)[1] if table else None
    if not name or inner is None:
        return inner
    field = inner.model_fields.get(name) if issubclass(inner, BaseModel) else None
    return field.annotation if field else None


def _entry_of(key: str) -> tuple[str, str, str]:
    """The table of named entries that ``key`` is below, the entry's name and the field of it; empty where there is
    none. A name may have dots in it, as those of models do, and stand in quotation marks, as in TOML."""
    table = next((name for name in _named_tables() if key.startswith(f"{name}.")), "")
    rest = key.removeprefix(f"{table}.")
    if quoted := _quoted_name.fullmatch(rest):
        return table, quoted[2], quoted[3] or ""
    name, dot, last = rest.rpartition(".")
    return table, name if dot else last, last if dot else ""


@cache
def _fields_by_key() -> Mapping[str, FieldInfo]:
    """Every setting by its key, kept: it is asked for every entry of every layer."""
    return dict(fields())


@cache
def _named_tables() -> tuple[str, ...]:
    """Settings that are tables of named entries."""
    return tuple(name for name, field in _fields_by_key().items() if get_origin(field.annotation) is dict)


def fields(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """(dotted key, field) of every setting there is."""
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from fields(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def nearest(name: str, names: Sequence[str]) -> str:
    """``Did you mean …?``, or nothing where nothing is near."""
    close = difflib.get_close_matches(name, names, 1, 0.5)
    close = close or [key for key in names if key.rpartition(".")[2] == name.rpartition(".")[2]]
    return f"Did you mean {close[0]}?" if close else ""


def require_known(key: str, names: Iterable[str], there: Iterable[str]) -> None:
    """Raises ConfigError for the first of ``names`` that is not ``there``; ``key`` is the setting."""
    listed = sorted(there)
    for name in names:
        if name not in listed:
            hint = nearest(name, listed)
            raise ConfigError(f"{key}: there is no {name[:SHOWN]!r}.", f"Known: {', '.join(listed)}.", hint)


def planted(entries: Iterable[SettingEntry]) -> dict[str, object]:
    """The tree of tables that ``entries`` make, each typed as its setting wants; the first of a key counts.

    Raises:
        ConfigError: a value that does not fit.
    """
    tree: dict[str, object] = {}
    for entry in entries:
        _plant(tree, _path(entry.key), _typed(entry), entry)
    return tree


def _path(key: str) -> list[str]:
    """The parts of ``key``."""
    table, name, field = _entry_of(key)
    return [*table.split("."), *filter(None, [name, field])] if table else key.split(".")


def _typed(entry: SettingEntry) -> Any:
    """Text of flags and variables as what the setting wants: a list by commas or as JSON, a table as JSON."""
    annotation = _setting_type(entry.key)
    container = dict if isinstance(annotation, type) and issubclass(annotation, BaseModel) else get_origin(annotation)
    if not entry.is_text or container in (None, Union, types.UnionType):
        return entry.value or None if container in (Union, types.UnionType) else entry.value
    if entry.value.lstrip().startswith(("[", "{")):
        try:
            return json.loads(entry.value)
        except ValueError as error:
            raise _refusal(entry, f"It is no JSON: {error}.") from error
    return [part.strip() for part in entry.value.split(",") if part.strip()] if container is tuple else entry.value


def _plant(tree: dict[str, object], path: list[str], value: Any, entry: SettingEntry) -> None:
    for part in path[:-1]:
        table = tree.setdefault(part, {})
        if not isinstance(table, dict):
            raise _refusal(entry, f"{part} was given both a value and parts of a table.")
        tree = table
    tree.setdefault(path[-1], value)


def leaves(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of nested mappings; an empty mapping is a value."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def validated(tree: dict[str, object], winners: Mapping[str, SettingEntry]) -> Settings:
    """The settings of ``tree``; ``winners`` are its entries, by key.

    Raises:
        ConfigError: they do not fit; names key, value and place.
    """
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        path = [str(part) for part in first["loc"]]
        if first["type"] == "missing":
            key = ".".join(path)
            raise ConfigError(f"{key} is missing.", "What is set beside it needs it.", f"Add --set {key}=…") from None
        while path and ".".join(path) not in winners:
            path.pop()
        entry = winners.get(".".join(path))
        if entry is None:
            raise ConfigError("The settings do not fit together.", first["msg"]) from None
        raise _refusal(entry, _reason(entry.key, first["type"], first["msg"])) from None


def _reason(key: str, kind: str, message: str) -> str:
    if key == "nats.url" and kind == "string_pattern_mismatch":
        return "It is no address like nats://host:4222 (several: with commas)."
    if key.endswith("url") and kind == "string_pattern_mismatch":
        return "It is no address like http://host:8080, or it has a user, a password or a space in it."
    if key.endswith(KEY_NAME):
        return "It takes the name of an environment variable, like OPENAI_API_KEY, not the key itself."
    return f"{message}."


def _refusal(entry: SettingEntry, why: str) -> ConfigError:
    secret = _setting_type(entry.key) is SecretStr or entry.key.endswith(KEY_NAME)
    address = isinstance(entry.value, str) and entry.key.endswith("url")
    shown = bare_address(str(entry.value)) if address else entry.value
    value = "" if secret else f" = {repr(shown)[:SHOWN]}"
    return ConfigError(f"{entry.key}{value} ({entry.origin}) is not valid.", why, "Meaning: agent0 config docs.")
