"""Loading of settings, part of the rim: flag > AGENT0_* > .env > ./agent0.toml > user's config.toml > packaged
profile > defaults. Each value knows where it came from; anything unknown or of a wrong type is an error."""

import difflib
import json
import os
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import platformdirs
from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from agent0.config import sources
from agent0.config.catalogue import OWN, SERVED, catalogue_model, serving_provider, stored_model
from agent0.config.sources import SettingEntry
from agent0.errors import ConfigError, bare_address
from agent0.events.base import sha256
from agent0.settings import RunConfig, Settings

DEFAULT_PROFILE = "tiny"
"""What a newcomer gets: it needs no GPU, no server and no key."""

PROFILES = Path(__file__).parent / "profiles"
LOCAL = "agent0.toml"
SHOWN = 80
_quoted_name = re.compile(r"""(["'])(.+)\1(?:\.([^."']+))?""")
KEY_NAME = "key_env"
"""Settings that end so name a variable; who writes the key itself there does not see it again."""
"""Characters of a refused value that an error repeats."""


@dataclass(frozen=True)
class Loaded:
    """Settings and, for every key that somebody set, the place it was set at."""

    settings: Settings
    origins: Mapping[str, str]

    def rows(self) -> list[tuple[str, str, str]]:
        """(key, value as JSON, origin) of every setting, secrets masked."""
        values = dict(leaves(public(self.settings)))
        return [(key, json.dumps(value), self._origin(key)) for key, value in values.items()]

    def _origin(self, key: str) -> str:
        return self.origins.get(key) or ("computed" if key in ("home", "profile") else "default")


def load(
    profile: str | Path | None = None, overrides: Mapping[str, str] = {}, env: Mapping[str, str] | None = None
) -> Settings:
    """The settings for ``profile`` (a packaged name, a ``[profile.X]`` of ./agent0.toml or the user's file, or the
    path of a TOML file), with ``overrides`` (dotted key -> text) above all else.

    Raises:
        ConfigError: unknown profile or key, or a value that does not fit; names key, value and place.
    """
    return resolve(profile, overrides, env).settings


def resolve(
    profile: str | Path | None = None, overrides: Mapping[str, str] = {}, env: Mapping[str, str] | None = None
) -> Loaded:
    """Like ``load``, and where each value came from. ``env`` defaults to the process environment.

    Raises:
        ConfigError: see ``load``.
    """
    typed = [sources.flags(overrides), sources.environment(os.environ if env is None else env)]
    typed.append(sources.dotenv(Path(".env")))
    chosen = str(profile or _chosen(typed) or DEFAULT_PROFILE)
    winners: dict[str, SettingEntry] = {}
    ranks: dict[str, int] = {}
    for rank, layer in enumerate((*typed, *_files(chosen))):
        for entry in layer:
            _check_key(entry)
            winners.setdefault(entry.key, entry)
            ranks.setdefault(entry.key, rank)
    tree: dict[str, object] = {}
    for entry in winners.values():
        _plant(tree, _path(entry.key), _typed(entry), entry)
    tree["profile"] = Path(chosen).stem if chosen.endswith(".toml") else chosen
    tree["home"] = home = _home(tree.get("home"))
    placed = _place_models(tree, ranks, home)
    settings = _validated(tree, winners)
    settings._typed = frozenset(overrides)
    settings._profile_file = str(Path(chosen).absolute()) if chosen.endswith(".toml") else ""
    return Loaded(settings, {entry.key: entry.origin for entry in winners.values()} | placed)


def _place_models(tree: Mapping[str, Any], ranks: Mapping[str, int], home: Path) -> dict[str, str]:
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


def amended(run: RunConfig, changes: Mapping[str, str], home: Path | None = None) -> RunConfig:
    """``run`` with ``changes`` (dotted key below ``run``, with or without it -> text), typed as any setting. ``{}``
    empties a table; any other table is added to it. ``home``: the data folder that models are named in.

    Raises:
        ConfigError: a key that is none, or a value that does not fit.
    """
    entries = sources.flags({key if key.startswith("run.") else f"run.{key}": text for key, text in changes.items()})
    tree: dict[str, object] = {}
    for entry in entries:
        _check_key(entry)
        _plant(tree, _path(entry.key), _typed(entry), entry)
    emptied = tuple(f"{entry.key}." for entry in entries if _typed(entry) == {})
    for key, value in leaves(run.model_dump(mode="json"), "run."):
        if key.startswith(emptied):
            continue
        _plant(tree, _path(key), value, SettingEntry(key, value, "the parent run"))
    if home:
        _place_models(tree, {entry.key: 0 for entry in entries}, home)
    return _validated(tree, {entry.key: entry for entry in entries}).run


def profiles() -> list[str]:
    """List the names of the packaged profiles, sorted."""
    return sorted(file.stem for file in PROFILES.glob("*.toml"))


def packaged_run(profile: str) -> RunConfig | None:
    """The run settings of a packaged profile alone, whatever else is set on this machine; None where there is none."""
    if profile not in profiles():
        return None
    return RunConfig.model_validate(sources.toml(PROFILES / f"{profile}.toml").get("run", {}))


def environment_settings() -> dict[str, str]:
    """Variables of the environment that are settings and no secrets, for a child process that loads settings, too."""
    entries = {name: sources.environment({name: text}) for name, text in os.environ.items()}
    return {
        name: setting[0].value
        for name, setting in entries.items()
        if setting and _annotation(setting[0].key) != SecretStr
    }


def public(settings: Settings) -> dict[str, object]:
    """Settings as JSON values without a secret: masked fields, and no user or password in addresses."""
    plain = settings.model_dump(mode="json")
    plain["nats"]["url"] = bare_address(settings.nats.url)
    plain["models"]["ollama_url"] = bare_address(settings.models.ollama_url)
    plain["web"]["search_url"] = bare_address(settings.web.search_url)
    return plain


def config_of(run: RunConfig) -> tuple[dict[str, object], str]:
    """What ``RunStarted`` stores: the configuration as JSON values and the sha256 of its canonical text."""
    plain = run.model_dump(mode="json")
    return plain, sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")))


def leaves(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of nested mappings; an empty mapping is a value."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def fields(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """(dotted key, field) of every setting there is."""
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from fields(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


@cache
def _fields_by_key() -> Mapping[str, FieldInfo]:
    """The same, kept: it is asked for every entry of every layer."""
    return dict(fields())


@cache
def _named_tables() -> tuple[str, ...]:
    """Settings that are tables of named entries."""
    return tuple(name for name, field in _fields_by_key().items() if get_origin(field.annotation) is dict)


def nearest(name: str, names: Sequence[str]) -> str:
    """``Did you mean …?``, or nothing where nothing is near."""
    close = difflib.get_close_matches(name, names, 1, 0.5)
    close = close or [key for key in names if key.rpartition(".")[2] == name.rpartition(".")[2]]
    return f"Did you mean {close[0]}?" if close else ""


def _chosen(layers: Sequence[Sequence[SettingEntry]]) -> str:
    named = [entry.value for layer in layers for entry in layer if entry.key == "profile"]
    named += [tables["profile"] for tables, _ in _own_files() if isinstance(tables.get("profile"), str)]
    return str(named[0]) if named else ""


def _own_files() -> list[tuple[dict[str, object], Path]]:
    paths = (Path(LOCAL), platformdirs.user_config_path("agent0") / "config.toml")
    return [(sources.toml(path), path) for path in paths]


def _files(chosen: str) -> Iterator[list[SettingEntry]]:
    """Layers of the person's own files, then of the profile itself."""
    own_files = _own_files()
    named = sorted({name for tables, _ in own_files for name in _tables(tables)})
    for tables, path in own_files:
        if chosen in _tables(tables):
            yield sources.entries(_tables(tables)[chosen], path, f"profile.{chosen}")
        yield sources.entries({key: value for key, value in tables.items() if key != "profile"}, path)
    packaged = PROFILES / f"{chosen}.toml"
    path = Path(chosen) if chosen.endswith(".toml") else packaged
    if path.is_file() and (path != packaged or chosen in profiles()):
        yield sources.entries(sources.toml(path), path)
    elif chosen.endswith(".toml") and chosen not in named:
        raise ConfigError(
            f"There is no profile at {chosen[:SHOWN]}.", "That file does not exist.", "Correct --profile."
        )
    elif chosen not in named:
        names = sorted({*profiles(), *named})
        raise ConfigError(
            f"There is no profile {chosen[:SHOWN]!r}.",
            f"Known: {', '.join(names)}; or name a .toml file.",
            nearest(chosen, names),
        )


def _tables(tables: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
    profile_tables = tables.get("profile")
    return profile_tables if isinstance(profile_tables, Mapping) else {}


_KERNEL = (("proc",), ("sys",))
"""Below these the kernel shows itself as files, and not even root makes one."""


def _home(configured: Any) -> Path:
    home = Path(configured).expanduser().absolute() if configured else platformdirs.user_data_path("agent0")
    fix = "Point AGENT0_HOME at a folder, or at a place where one can be made."
    try:
        there = next(path for path in (home, *home.parents) if path.exists())
    except OSError as error:
        raise ConfigError(f"The data folder cannot be {str(home)[:SHOWN]}.", f"{error.strerror}.", fix) from None
    if not there.is_dir():
        raise ConfigError(f"The data folder cannot be {home}.", f"{there} is no folder.", fix)
    if configured and there != home and (there.parts[1:2] in _KERNEL or not os.access(there, os.W_OK | os.X_OK)):
        raise ConfigError(f"The data folder cannot be {home}.", f"Nothing can be made in {there}.", fix)
    return home


def _annotation(key: str) -> Any:
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


def _path(key: str) -> list[str]:
    """The parts of ``key``."""
    table, name, field = _entry_of(key)
    return [*table.split("."), *filter(None, [name, field])] if table else key.split(".")


def _check_key(entry: SettingEntry) -> None:
    kind = _annotation(entry.key)
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
            f"Set {sources.PREFIX}{entry.key.upper().replace('.', '__')} in the environment or in .env.",
        )


def _typed(entry: SettingEntry) -> Any:
    """Text of flags and variables as what the setting wants: a list by commas or as JSON, a table as JSON."""
    annotation = _annotation(entry.key)
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


def _validated(tree: dict[str, object], winners: Mapping[str, SettingEntry]) -> Settings:
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
    secret = _annotation(entry.key) is SecretStr or entry.key.endswith(KEY_NAME)
    address = isinstance(entry.value, str) and entry.key.endswith("url")
    shown = bare_address(str(entry.value)) if address else entry.value
    value = "" if secret else f" = {repr(shown)[:SHOWN]}"
    return ConfigError(f"{entry.key}{value} ({entry.origin}) is not valid.", why, "Meaning: agent0 config docs.")
