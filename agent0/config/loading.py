"""Loading of settings, part of the rim: flag > AGENT0_* > .env > ./agent0.toml > user's config.toml > packaged
profile > defaults. Each value knows where it came from; anything unknown or of a wrong type is an error."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from agent0.config import sources
from agent0.config.catalogue import place_models
from agent0.config.setting_entries import (
    SHOWN,
    SettingEntry,
    check_key,
    flags,
    is_secret,
    leaves,
    nearest,
    planted,
    validated,
)
from agent0.errors import ConfigError, bare_address
from agent0.settings import RunConfig, Settings

DEFAULT_PROFILE = "tiny"
"""What a newcomer gets: it needs no GPU, no server and no key."""

PROFILES = Path(__file__).parent / "profiles"
LOCAL = "agent0.toml"


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
    typed = [flags(overrides), sources.environment(os.environ if env is None else env)]
    typed.append(sources.dotenv(Path(".env")))
    chosen = str(profile or _chosen(typed) or DEFAULT_PROFILE)
    winners: dict[str, SettingEntry] = {}
    ranks: dict[str, int] = {}
    for rank, layer in enumerate((*typed, *_files(chosen))):
        for entry in layer:
            check_key(entry)
            winners.setdefault(entry.key, entry)
            ranks.setdefault(entry.key, rank)
    tree = planted(winners.values())
    tree["profile"] = Path(chosen).stem if chosen.endswith(".toml") else chosen
    tree["home"] = home = _home(tree.get("home"))
    placed = place_models(tree, ranks, home)
    settings = validated(tree, winners)
    settings._typed = frozenset(overrides)
    settings._own = frozenset(key for key, entry in winners.items() if not entry.origin.startswith(str(PROFILES)))
    settings._profile_file = str(Path(chosen).absolute()) if chosen.endswith(".toml") else ""
    return Loaded(settings, {entry.key: entry.origin for entry in winners.values()} | placed)


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
    return {name: setting[0].value for name, setting in entries.items() if setting and not is_secret(setting[0].key)}


def public(settings: Settings) -> dict[str, object]:
    """Settings as JSON values without a secret: masked fields, and no user or password in addresses."""
    plain = settings.model_dump(mode="json")
    plain["nats"]["url"] = bare_address(settings.nats.url)
    plain["models"]["ollama_url"] = bare_address(settings.models.ollama_url)
    plain["web"]["search_url"] = bare_address(settings.web.search_url)
    return plain


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
