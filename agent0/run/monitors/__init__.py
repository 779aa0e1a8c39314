"""Monitors of learning, one file each: a pure function from an iteration's measures to a finding.

A guard sees the measures of all iterations so far, oldest first, and reports what holds now. To add one, copy a file of
this folder and add its action to ``GuardConfig``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent0.registry import Registry
from agent0.settings import GuardConfig, RunConfig

History = Sequence[Mapping[str, float]]
"""Measures by name (``agent0.run.iteration_measures.MEANING``), an iteration each."""


@dataclass(frozen=True)
class Finding:
    """A condition that holds now, in words with its numbers."""

    message: str
    facts: Mapping[str, float] = field(default_factory=dict)
    severity: Literal["info", "warning", "critical"] = "warning"


Guard = Callable[[History, GuardConfig], Finding | None]
_guards = Registry[str, Guard]("guards", __name__)
_conditions: dict[str, Callable[[RunConfig], bool]] = {}
"""Of what runs a guard reports, where it is not all of them."""


def guard(watch: Guard) -> Guard:
    """Register a monitor under its function's name, which is that of its action in ``GuardConfig``."""
    return _guards.add(watch.__name__, watch)


def guard_of(applies: Callable[[RunConfig], bool]) -> Callable[[Guard], Guard]:
    """Register a monitor of those runs alone whose configuration ``applies`` accepts."""

    def register(watch: Guard) -> Guard:
        _conditions[watch.__name__] = applies
        return guard(watch)

    return register


def guards(config: RunConfig | None = None) -> dict[str, Guard]:
    """Return the registered monitors by name, sorted: those of runs with ``config``, all where there is none."""
    monitors = _guards.all()
    return {name: watch for name, watch in monitors.items() if config is None or _applies(name, config)}


def _applies(name: str, config: RunConfig) -> bool:
    return name not in _conditions or _conditions[name](config)


def known_values(history: History, name: str, last: int = 0) -> list[float]:
    """The known values of one measure, oldest first; of the ``last`` iterations only where a number is given."""
    return [each[name] for each in history[-last:] if name in each]
