"""Who decides what is right. One file a way of deciding; each is bounded and says why.

A verdict is True, False or None: what cannot be decided is undecided, never wrong.
"""

import functools
import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agent0.ports import Sandbox
from events.values import Task


@dataclass(frozen=True)
class Verdict:
    """A decision with its reason and both normal forms."""

    correct: bool | None
    reason: str
    expected: str = ""
    got: str = ""


Judge = Callable[[Task, Sequence[str | None], Sandbox], Awaitable[list[Verdict]]]


@dataclass(frozen=True)
class Verifier:
    """A registered way of deciding. ``applies`` says for which tasks; ``collective`` ones see all attempts at once."""

    name: str
    judge: Judge
    applies: Callable[[Task], bool]
    rank: int
    collective: bool


_verifiers: dict[str, Verifier] = {}


def verifier(
    name: str, *, applies: Callable[[Task], bool], rank: int, collective: bool = False
) -> Callable[[Judge], Judge]:
    """Register ``async judge(task, answers, sandbox) -> one verdict an answer``. Lower ranks are asked first."""

    def register(judge: Judge) -> Judge:
        _verifiers[name] = Verifier(name, judge, applies, rank, collective)
        return judge

    return register


def verifiers() -> dict[str, Verifier]:
    """Every verifier by name, best first."""
    _import_all()
    return dict(sorted(_verifiers.items(), key=lambda item: item[1].rank))


def verifier_for(task: Task) -> Verifier:
    """The best verifier that applies to ``task``; self-consistency applies to every task."""
    return next(entry for entry in verifiers().values() if entry.applies(task))


@functools.cache
def _import_all() -> None:
    for found in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{found}")
