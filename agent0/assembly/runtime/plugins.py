"""Part of the rim: the handlers there are, those of plugins included."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent0.assembly.runtime.providers import (
    load_plugins,
)
from agent0.config.loading import nearest
from agent0.errors import ConfigError

if TYPE_CHECKING:
    from handlers import Handler


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
