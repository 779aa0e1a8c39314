"""Cheats: teachers and students that want pay without the work, played against honest ones through the real rewards.

A policy is one function; the play itself is in ``play``. Everything is drawn from a seed, and a cheat meets the same
tasks and the same luck as the honest policy it stands beside, so that a difference in pay is the cheat's doing.
"""

import functools
import importlib
import pkgutil
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from agent0.state.run_state import Made
from events.values import Role, Task

HONEST = "honest"


@dataclass(frozen=True)
class Proposal:
    """What a teacher comes up with: its text, the task in it (None: none), the answer that students find (None: they
    find none) and how likely, what they say otherwise, and the calls they are made to make beside their own."""

    text: str
    task: Task | None
    answer: str | None = None
    chance: float = 0.5
    others: tuple[str, ...] = ("no idea",)
    padding: tuple[Made, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """What a student hands in."""

    answer: str | None
    calls: tuple[Made, ...] = ()
    tokens: int = 60
    errors: int = 0


@dataclass(frozen=True)
class Found:
    """What an honest student would have come to: ``answer``, by ``calls`` that compute it."""

    proposal: Proposal
    answer: str
    calls: tuple[Made, ...] = field(default=())


Teacher = Callable[[random.Random, list[Proposal]], Proposal]
"""One proposal, from what an honest teacher would have proposed: now, which comes first of the list, and before."""
Student = Callable[[random.Random, Found], Attempt]
_teachers: dict[str, Teacher] = {}
_students: dict[str, Student] = {}


def teacher(name: str) -> Callable[[Teacher], Teacher]:
    """Register a teacher's policy."""

    def register(policy: Teacher) -> Teacher:
        _teachers[name] = policy
        return policy

    return register


def student(name: str) -> Callable[[Student], Student]:
    """Register a student's policy."""

    def register(policy: Student) -> Student:
        _students[name] = policy
        return policy

    return register


def teacher_policies() -> dict[str, Teacher]:
    """Every teacher by name, the honest one first."""
    _import_all()
    return dict(sorted(_teachers.items(), key=lambda item: (item[0] != HONEST, item[0])))


def student_policies() -> dict[str, Student]:
    """Every student by name, the honest one first."""
    _import_all()
    return dict(sorted(_students.items(), key=lambda item: (item[0] != HONEST, item[0])))


def about(role: Role, name: str) -> str:
    """What a policy does."""
    policy = teacher_policies()[name] if role == "teacher" else student_policies()[name]
    return " ".join((policy.__doc__ or "").split())


@functools.cache
def _import_all() -> None:
    for found in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{found}")
