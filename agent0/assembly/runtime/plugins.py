"""Part of the rim: code of users that registers handlers, tools, rewards and so on when imported: modules that packages
name as entry points, and single files."""

import hashlib
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.abc import SourceLoader
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError
from agent0.infra.storage.files import read_regular
from agent0.registry import LOADED, PREFIX, REGISTRIES, Registry, TakenError
from agent0.settings import Settings

if TYPE_CHECKING:
    from agent0.handlers import Handler


PLUGINS = "agent0.plugins"
"""The entry point group under which packages name their modules."""
GUIDE = "docs/guide/your-own-reward.md has a whole one."
LARGEST = 1 << 20
"""Bytes of a plugin file."""

Keys = list[tuple[Registry[Any, Any], Any]]

_adds: dict[str, Keys] = {}
"""What each file that was loaded registered; by its name without .py."""


@cache
def load_plugins() -> tuple[str, ...]:
    """Import every module named under the entry point group, once; importing registers what it declares.

    Raises:
        ConfigError: a plugin that cannot be imported.
    """
    points = sorted(entry_points(group=PLUGINS), key=lambda point: point.name)
    for point in points:
        try:
            point.load()
        except (ImportError, AttributeError, SyntaxError, TypeError, ValueError) as error:
            why = f"{type(error).__name__}: {error}."
            fix = f"Update or uninstall {point.dist.name if point.dist else point.value}."
            raise ConfigError(f"The plugin {point.name} cannot be loaded.", why, fix) from error
    return tuple(point.name for point in points)


def with_plugin_files(settings: Settings) -> Settings:
    """Load the files that ``settings.plugins`` names; returns the settings with their digests in ``run.plugins``.

    Raises:
        ConfigError: a file that cannot be read, fails, registers nothing, or registers a name that is taken.
    """
    if not settings.plugins:
        return settings
    digests = {path.stem: load_plugin_file(path) for path in settings.plugins}
    run = settings.run.model_copy(update={"plugins": {**settings.run.plugins, **digests}})
    return settings.model_copy(update={"run": run})


def load_plugin_file(path: Path) -> str:
    """Execute one Python file, so that what it declares is registered; returns its sha256. A file that is loaded
    already is not executed again; where it has changed since, what it registered is replaced.

    Raises:
        ConfigError: as ``with_plugin_files``.
    """
    try:
        source = read_regular(path, LARGEST)
    except OSError as error:
        why = f"{str(error.strerror)[:1].upper()}{str(error.strerror)[1:]}."
        raise ConfigError(
            f"The plugin {path} cannot be read.", why, "Correct --plugin, or the setting plugins."
        ) from error
    digest = hashlib.sha256(source).hexdigest()
    if LOADED.get(path.stem) != digest:
        load_plugins()
        _load_packaged()
        before = [(registry, dict(registry.entries)) for registry in REGISTRIES if registry.loaded]
        try:
            for registry, key in _adds.get(path.stem, ()):
                registry.entries.pop(key, None)
            _adds[path.stem] = _registered(path, source)
        except ConfigError:
            for registry, entries in before:
                registry.entries = entries
            raise
        LOADED[path.stem] = digest
    return digest


def _load_packaged() -> None:
    """Import everything of ours that a file may add to, so that a name that is taken is known to be."""
    from agent0.rewards import reward_sets, rewards
    from agent0.rollout.prompts import styles
    from agent0.tasks.families import families
    from agent0.tools import tools
    from agent0.training.gate import gates
    from agent0.verification.verifiers import verifiers

    rewards("student")
    for look in (reward_sets, families, tools, gates, verifiers, styles):
        look()


def _registered(path: Path, source: bytes) -> Keys:
    """Execute the file; what it registered."""
    before = {id(registry): dict(registry.entries) for registry in REGISTRIES}
    _execute(path, source)
    adds: Keys = []
    for registry in REGISTRIES:
        earlier = before.get(id(registry), {})
        for key, entry in registry.entries.items():
            if key in earlier and earlier[key] is not entry:
                raise _taken(path, registry.what, key)
            if key not in earlier:
                adds.append((registry, key))
    _check_features(path, adds)
    if not adds:
        why = "None of its functions has a decorator such as @agent0.reward, or they come from another file."
        raise ConfigError(f"The plugin {path.name} registers nothing.", why, GUIDE)
    return adds


def _check_features(path: Path, adds: Keys) -> None:
    """Require that rewards read known features only: an unknown name would silently give None."""
    from agent0.rewards import Reward, rewards
    from agent0.rewards.features import features

    added = [registry.entries[key] for registry, key in adds]
    for entry in (entry for entry in added if isinstance(entry, Reward)):
        others = [entry for entry in rewards(entry.role).values() if entry not in added]
        feature_names = sorted({*features(entry.role), *(name for reward in others for name in reward.reads)})
        for name in entry.reads:
            if name not in feature_names:
                what = f"The plugin {path.name}: the reward {entry.name} reads {name!r}, which is no feature."
                raise ConfigError(what, f"Of a {entry.role}: {', '.join(feature_names)}.", nearest(name, feature_names))


class _DigestedLoader(SourceLoader):
    """Imports the bytes that were digested, whatever is cached of the file."""

    def __init__(self, path: Path, source: bytes) -> None:
        self._path, self._source = str(path), source

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_data(self, path: object) -> bytes:
        return self._source


def _execute(path: Path, source: bytes) -> None:
    """Import ``source`` as a module of its own."""
    name, loader = f"{PREFIX}{path.stem}", _DigestedLoader(path, source)
    spec = spec_from_loader(name, loader)
    if spec is None or not path.stem.isidentifier():
        why = "A name like my_reward.py is needed: letters, digits, underscores, then .py."
        raise ConfigError(f"The plugin {path} has a name that cannot be imported.", why, "Rename the file.")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except TakenError as error:
        raise _taken(path, *str(error).removeprefix("two ").split(" are named ", 1)) from error
    except (Exception, SystemExit) as error:  # whatever a user's code raises, it is the file that is at fault
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        why = f"{f'Line {line}: ' if line else ''}{type(error).__name__}: {error}"
        raise ConfigError(f"The plugin {path.name} fails on import.", why, f"Correct {path}.") from error


def _taken(path: Path, what: str, key: object) -> ConfigError:
    name = key[-1] if isinstance(key, tuple) else key
    why = f"{name!r} of {what} is registered already."
    return ConfigError(f"The plugin {path.name} takes a name that is taken.", why, "Choose another name in the file.")


def check_plugins(recorded: Mapping[str, str], of: str) -> None:
    """The files that were ``recorded`` (name without .py -> sha256) with ``of``, a run, must be loaded.

    Raises:
        ConfigError: a file that is not, or that is another one now.
    """
    for name, digest in recorded.items():
        loaded = LOADED.get(name)
        if loaded is None:
            why, fix = f"It registers what {of} uses (sha256 {digest[:12]}).", f"Add: --plugin PATH/{name}.py"
            raise ConfigError(f"The plugin {name} is not loaded.", why, fix)
        if loaded != digest:
            why = f"This one has sha256 {loaded[:12]}, that of {of} {digest[:12]}."
            fix = f"Restore it, or begin anew with this one: agent0 run fork {of} --at EVENT --plugin PATH/{name}.py"
            raise ConfigError(f"The plugin {name} has changed.", why, fix)


def of_session() -> list[str]:
    """Names of rewards, tools, families and verifiers that a program or a notebook declares outside of any file that
    is recorded: no other process has them, and nothing of them is in the log."""
    names = []
    for registry in REGISTRIES:
        for entry in registry.entries.values():
            made_by = next(
                (getattr(entry, name) for name in ("score", "run", "sample", "judge") if hasattr(entry, name)), None
            )
            if getattr(made_by, "__module__", "") == "__main__":
                names.append(str(entry.name))
    return sorted(names)


def known_handlers(names: Sequence[str] = ()) -> dict[str, "Handler"]:
    """Handlers by name, plugins included; only ``names`` where given.

    Raises:
        ConfigError: no such handler.
    """
    from agent0.handlers import handlers

    load_plugins()
    registered = handlers()
    for name in names:
        if name not in registered:
            raise ConfigError(
                f"There is no handler {name!r}.", nearest(name, list(registered)), "See: agent0 handlers list"
            )
    return {name: registered[name] for name in names or registered}
