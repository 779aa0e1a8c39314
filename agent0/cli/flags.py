"""The settings of a command: of its profile, its ``--set`` pairs and the flags that stand for one."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent0.assembly.runtime.plugins import with_plugin_files
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.settings import Settings


def settings(
    profile: str | None = None,
    pairs: Sequence[str] | None = None,
    *,
    plugins: Sequence[Path] | None = None,
    **named: object,
) -> Settings:
    """The settings for a command: its profile, ``--set`` pairs, and flags that stand for a setting (dots as ``__``).
    The files of ``plugins``, or of the setting of that name, are loaded.

    Raises:
        ConfigError: what does not fit, or a plugin that cannot be loaded.
    """
    return settings_of(profile, overrides(pairs, plugins=plugin_paths(plugins), **named))


def settings_of(profile: str | None, values: Mapping[str, str]) -> Settings:
    """The settings for ``values`` ones by dotted key; the files of the setting ``plugins`` are loaded.

    Raises:
        ConfigError: as ``settings``.
    """
    settings = load(profile, values)
    if not settings.plugins:
        return settings
    return with_plugin_files(settings)


def plugin_paths(plugins: Sequence[Path] | None) -> str | None:
    """The value of the setting ``plugins``: absolute paths as JSON; None where none is given."""
    return json.dumps([str(path.absolute()) for path in plugins]) if plugins else None


def overrides(pairs: Sequence[str] | None, **named: object) -> dict[str, str]:
    """``--set`` pairs and flags as dotted keys; flags that were not given are None.

    Raises:
        ConfigError: a pair without ``=``.
    """
    values = {key.replace("__", "."): str(value) for key, value in named.items() if value is not None}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair!r} has no '='.", "Write --set key=value.", "Keys: agent0 config docs.")
        values[key.strip()] = value
    return values
