"""Part of the rim: modules of other packages that register handlers, tools, rewards and so on when imported."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from agent0.assembly.runtime.moved_paths import follow_moves, moved
from agent0.config.loading import nearest
from agent0.errors import ConfigError

if TYPE_CHECKING:
    from handlers import Handler


PLUGINS = "agent0.plugins"
"""The entry point group under which packages name their modules."""


@cache
def load_plugins() -> tuple[str, ...]:
    """Import every module named under the entry point group, once; importing registers what it declares.

    Raises:
        ConfigError: a plugin that cannot be imported.
    """
    found = sorted(entry_points(group=PLUGINS), key=lambda point: point.name)
    if found:
        follow_moves()
    for point in found:
        try:
            point.load()
        except (ImportError, AttributeError, SyntaxError, TypeError, ValueError) as error:
            why = f"{type(error).__name__}: {error}.{moved(error)}"
            fix = f"Update or uninstall {point.dist.name if point.dist else point.value}."
            raise ConfigError(f"The plugin {point.name} cannot be loaded.", why, fix) from error
    return tuple(point.name for point in found)


def known_handlers(names: Sequence[str] = ()) -> dict[str, "Handler"]:
    """Handlers by name, plugins included; only ``names`` where given.

    Raises:
        ConfigError: no such handler.
    """
    from handlers import handlers

    load_plugins()
    known = handlers()
    for name in names:
        if name not in known:
            raise ConfigError(f"There is no handler {name!r}.", nearest(name, list(known)), "See: agent0 handlers list")
    return {name: known[name] for name in names or known}
