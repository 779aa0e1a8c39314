"""Monitors of learning, one file each: a pure function from an iteration's measures to a finding.

A guard sees the measures of all iterations so far, oldest first, and reports what holds now. To add one, copy a file of
this folder and add its action to ``GuardConfig``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent0.registry import Registry
from agent0.settings import GuardConfig

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


def guard(watch: Guard) -> Guard:
    """Register a monitor under its function's name, which is that of its action in ``GuardConfig``."""
    return _guards.add(watch.__name__, watch)


def guards() -> dict[str, Guard]:
    """Return every registered monitor by its function's name, sorted."""
    return _guards.all()


def known(history: History, name: str, last: int = 0) -> list[float]:
    """The known values of one measure, oldest first; of the ``last`` iterations only where a number is given."""
    return [each[name] for each in history[-last:] if name in each]
