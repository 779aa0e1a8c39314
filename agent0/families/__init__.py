"""Task families: how a kind of task is drawn, worded, read back, solved and told apart. One file each.

A family checks by computing: ``solve`` needs only what ``parse`` reads from the question, so no answer key exists
that a student could see. To add one, copy a file of this folder; it registers itself.
"""

import functools
import importlib
import pkgutil
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Params = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A subgoal of a long task: what is wanted, and its answer as text."""

    text: str
    answer: str


@dataclass(frozen=True)
class Family:
    """A kind of task with levels 1 to ``levels`` (harder upwards).

    ``sample(level, rng)`` draws parameters, ``render(params, rng)`` words them in one of several ways, and
    ``parse(question)`` reads parameters back from any of those wordings, strictly: None for anything else.
    ``level(params)`` grades, ``solve(params)`` gives the exact answer as text, ``canonical(params)`` is the identity
    that survives rewording. ``call(params)`` is a reference tool call (name, arguments) that prints the answer; only
    the bootstrap of the built-in model uses it. All are pure, total on what ``parse`` accepts, and bounded.

    A long family has ``steps(params)``, its subgoals in order, the last of which is answered by ``solve(params)``; and
    ``script(params)``, the turns that a perfect student writes, tool calls spelled as ``agent0.parsing.format_call``
    does. Only the scripted model reads a script.
    """

    name: str
    domain: str
    sample: Callable[[int, random.Random], Params]
    render: Callable[[Params, random.Random], str]
    parse: Callable[[str], Params | None]
    level: Callable[[Params], int]
    solve: Callable[[Params], str]
    canonical: Callable[[Params], str]
    call: Callable[[Params], tuple[str, dict[str, Any]]]
    levels: int = 4
    steps: Callable[[Params], tuple[Step, ...]] | None = None
    script: Callable[[Params], tuple[str, ...]] | None = None

    @property
    def long(self) -> bool:
        """Whether its tasks have subgoals."""
        return self.steps is not None


_families: dict[str, Family] = {}


def family(entry: Family) -> Family:
    """Register ``entry``. Raises ValueError where the name is taken."""
    if entry.name in _families and _families[entry.name] is not entry:
        raise ValueError(f"two families are named {entry.name}")
    _families[entry.name] = entry
    return entry


def families(domain: str = "", long: bool | None = False) -> dict[str, Family]:
    """All short families by name, sorted; of one domain where it is named. ``long``: the long ones, None for both."""
    _import_all()
    chosen = (_families[name] for name in sorted(_families))
    return {f.name: f for f in chosen if domain in ("", f.domain) and long in (None, f.long)}


def kind_of(name: str) -> Literal["short", "long"]:
    """Of the tasks that are wanted where the family ``name`` is asked for; open ones are short."""
    return "long" if name in families(long=True) else "short"


@functools.cache
def _import_all() -> None:
    for found in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{found}")
