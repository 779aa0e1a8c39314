"""Cheats: teachers and students that want pay without the work, played against honest ones through the real rewards.

A policy is one function; the play itself is in ``play``. Everything is drawn from a seed, and a cheat meets the same
tasks and the same luck as the honest policy it stands beside, so that a difference in pay is the cheat's doing.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from agent0.registry import Registry
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


def _honest_first(name: str, _: object) -> tuple[bool, str]:
    return name != HONEST, name


_teachers = Registry[str, Teacher]("teachers", __name__, order=_honest_first)
_students = Registry[str, Student]("students", __name__, order=_honest_first)


def teacher(name: str) -> Callable[[Teacher], Teacher]:
    """Register a teacher's policy."""
    return _teachers.adding(name, lambda policy: policy)


def student(name: str) -> Callable[[Student], Student]:
    """Register a student's policy."""
    return _students.adding(name, lambda policy: policy)


def teacher_policies() -> dict[str, Teacher]:
    """Every teacher by name, the honest one first."""
    return _teachers.all()


def student_policies() -> dict[str, Student]:
    """Every student by name, the honest one first."""
    return _students.all()


def about(role: Role, name: str) -> str:
    """What a policy does."""
    policy = teacher_policies()[name] if role == "teacher" else student_policies()[name]
    return " ".join((policy.__doc__ or "").split())
