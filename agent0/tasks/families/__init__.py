"""Task families: how a kind of task is drawn, worded, parsed, solved and identified. One file each.

A family verifies by computing: ``solve``, or ``check`` where many answers are right, needs only what ``parse`` reads
from the question, so no answer key exists that a student could see. To add one, copy a file of this folder; it
registers itself.
"""

import operator
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agent0.registry import Registry

Params = dict[str, Any]
Fault = Literal["unsolvable", "trivial"]
COMPUTED, CHECKED, LADDER = KINDS = ("computed", "checked", "ladder")
"""Of families: those that compute the answer, and those that only check one, which together are the default mix; and
ladders, which are asked for by name only."""


OPEN_FAMILY = "open"
"""The family of free questions, which bring a checking program of their own. None is registered: there is nothing to
draw or to solve."""


@dataclass(frozen=True)
class Subgoal:
    """A subgoal of a long task: its text in the question, and its answer as text."""

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
    ``script(params)``, the turns that a perfect student writes, tool calls spelled as
    ``agent0.chat_format.format_call`` does. Only the scripted model reads a script.

    A checked family has ``check(params, answer)`` in place of a key: checking is easy, finding is hard, and many
    answers are right. It gives "" where ``answer`` is right, else shortly why not, the first wrong step and never a way
    that is right; it is bounded for any text and evaluates none. ``solve`` then finds one answer by a bounded search,
    "" where there is none, and what ``call`` prints is one. ``trivial(params)`` says why there is nothing to find, ""
    where there is; ``sample`` draws only what can be solved and is not trivial.

    Controls need no model: ``derive(params, rng)`` writes a uniformly random derivation ("" where a draw ends nowhere),
    ``chance(params)`` is the exact probability that one is right.

    ``operands(params)`` is what a task shares with those that ask for something else of the same material (other
    targets of the same numbers): all of them are on one side of the split (``agent0.tasks.splits.split_key``).

    A ``ladder`` asks for one skill at levels that go on as far as an answer may be long: a student that was taught the
    lowest levels can climb. It is checked, and its lowest levels have few tasks.
    """

    name: str
    domain: str
    sample: Callable[[int, random.Random], Params]
    render: Callable[[Params, random.Random], str]
    parse: Callable[[str], Params | None]
    level: Callable[[Params], int]
    solve: Callable[[Params], str]
    canonical: Callable[[Params], str]
    call: Callable[[Params], tuple[str, Mapping[str, str]]]
    levels: int = 4
    steps: Callable[[Params], tuple[Subgoal, ...]] | None = None
    script: Callable[[Params], tuple[str, ...]] | None = None
    check: Callable[[Params, str], str] | None = None
    trivial: Callable[[Params], str] | None = None
    derive: Callable[[Params, random.Random], str] | None = None
    chance: Callable[[Params], float] | None = None
    operands: Callable[[Params], str] | None = None
    ladder: bool = False

    def __post_init__(self) -> None:
        if self.check and self.steps:
            raise ValueError(f"family {self.name} has steps, whose answers are compared: it cannot have a check")

    @property
    def long(self) -> bool:
        """Whether its tasks have subgoals and are attempted turn by turn."""
        return self.steps is not None

    @property
    def kind(self) -> str:
        """``computed`` where the family computes the answer, ``checked`` where it only checks one; or ``ladder``."""
        return LADDER if self.ladder else CHECKED if self.check else COMPUTED


_families = Registry[str, Family]("families", __name__, same=operator.is_)


def family(entry: Family) -> Family:
    """Register a family under its name; returns it.

    Raises:
        ValueError: another family has this name.
    """
    return _families.add(entry.name, entry)


def families(domain: str = "", long: bool | None = False) -> dict[str, Family]:
    """Return the registered families by name, sorted; of one domain where ``domain`` names it.

    ``long``: False for short families, True for long ones, None for both.
    """
    registered = _families.all().items()
    return {name: f for name, f in registered if domain in ("", f.domain) and long in (None, f.long)}


def requested_families(domain: str, names: Sequence[str] = (), long: bool | None = False) -> dict[str, Family]:
    """The families that a curriculum setting requests in ``domain``; ``names`` are families or ``KINDS``.

    Without names these are the computed families, or all where there are none such.
    """
    available, requested = families(domain, long), names or (COMPUTED,)
    chosen = {name: entry for name, entry in available.items() if not {name, entry.kind}.isdisjoint(requested)}
    return chosen if chosen or names else available


def rejection(name: str, question: str) -> tuple[Fault, str] | None:
    """Why a question of the checked family ``name`` should be rejected: it is unsolvable or trivial.

    None where nothing is known against it, as for families that compute their answers.
    """
    entry = families(long=None).get(name)
    params = entry.parse(question) if entry and entry.check else None
    if entry is None or params is None:
        return None
    if not entry.solve(params):
        return "unsolvable", "the search for an answer found none"
    why = entry.trivial(params) if entry.trivial else ""
    return ("trivial", why) if why else None


def task_length(name: str) -> Literal["short", "long"]:
    """Whether the family ``name`` makes long or short tasks; tasks of no family are short."""
    return "long" if name in families(long=True) else "short"
