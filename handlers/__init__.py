"""Reactions: one file per verb, each a plain async function ``(event, run, ports by name) -> list[Event]``.

A handler never publishes, sleeps, retries, logs or reads a clock: only the bus does.
File = function = durable consumer.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from agent0.errors import DependencyError
from agent0.events.base import Event, Recorded
from agent0.registry import LOADED, Registry
from agent0.run.lifecycle import RunState
from agent0.settings import RunConfig

Reaction = Callable[..., Awaitable[list[Event]]]
_OWN = ("event", "run", "cause")


@dataclass(frozen=True)
class Handler:
    """A registered reaction to events.

    ``events`` are class names; ``inputs`` which of ``event``, ``run`` (the fold up to and including the cause) and
    ``cause`` (the envelope) it takes; ``ports`` its other parameter names. ``in_flight`` bounds concurrent reactions of
    a process (1: in the order of the run). ``long`` reactions may take minutes: they heartbeat. ``roles`` are those
    whose models it asks or trains; with ``plugins`` files of a user may change what it does.
    """

    name: str
    react: Reaction
    events: tuple[str, ...]
    ports: tuple[str, ...]
    inputs: tuple[str, ...]
    in_flight: int
    long: bool
    roles: tuple[str, ...] = ()
    plugins: bool = True

    async def __call__(self, cause: Recorded, run: RunState | None, ports: Mapping[str, object]) -> list[Event]:
        """React to ``cause``; returns the effects in order. Who takes ``run`` does not react to what belongs to none,
        as an experiment's events.

        Raises:
            DependencyError: as ``require_plugins`` does.
        """
        if run is None and "run" in self.inputs:
            return []
        if run and self.plugins:
            require_plugins(run.config)
        available = {"event": cause.event, "run": run, "cause": cause}
        arguments = {name: available[name] for name in self.inputs}
        return await self.react(**arguments, **{name: ports[name] for name in self.ports})


def require_plugins(config: RunConfig) -> None:
    """Check that this process has loaded the files that a run of ``config`` began with.

    Raises:
        DependencyError: it lacks a file of rewards, verifiers, tools or families: without it this would be another
            reaction, and nobody would notice.
    """
    for name, digest in config.plugins.items():
        if LOADED.get(name) != digest:
            fix = f"Start one that has it: agent0 handlers run --plugin PATH/{name}.py"
            raise DependencyError(f"the plugin {name}", f"The run began with sha256 {digest[:12]} of it.", fix)


_handlers = Registry[str, Handler](
    "handlers", __name__, same=lambda registered, new: registered.react.__module__ == new.react.__module__
)


def on(
    *events: type[Event],
    in_flight: int = 64,
    long: bool = False,
    roles: tuple[str, ...] = ("student",),
    plugins: bool = True,
) -> Callable[[Reaction], Reaction]:
    """Register the decorated function as the reaction to ``events`` under its own name. ``roles`` count where it has a
    port to models."""

    def register(react: Reaction) -> Reaction:
        name = react.__name__
        names = tuple(inspect.signature(react).parameters)
        ports, inputs = tuple(n for n in names if n not in _OWN), tuple(n for n in names if n in _OWN)
        roles_of = roles if {"models", "trainers"} & set(ports) else ()
        kinds = tuple(event.__name__ for event in events)
        _handlers.add(name, Handler(name, react, kinds, ports, inputs, in_flight, long, roles_of, plugins))
        return react

    return register


def handlers() -> dict[str, Handler]:
    """Return every handler by name; imports each module of this package once."""
    return _handlers.all()
