"""Reward-hacking policies: teachers and students that exploit the rewards, compared with honest ones under the real
code.

A policy is one function; ``play`` runs the simulation. Everything is drawn from a seed, and a cheating policy meets the
same tasks and the same draws as the honest one, so that a difference in reward comes from the policy alone.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from agent0.events.values import Role, Task
from agent0.registry import Registry
from agent0.state.run_state import ToolCallRecord

HONEST = "honest"


@dataclass(frozen=True)
class Proposal:
    """What a simulated teacher proposes.

    Its text, the task in it (None: no task), the answer that students find (None: none) and with which probability, the
    wrong answers they give otherwise, and calls that the text makes them add.
    """

    text: str
    task: Task | None
    answer: str | None = None
    chance: float = 0.5
    others: tuple[str, ...] = ("no idea",)
    padding: tuple[ToolCallRecord, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """What a simulated student hands in: answer, tool calls, token count and parse errors."""

    answer: str | None
    calls: tuple[ToolCallRecord, ...] = ()
    tokens: int = 60
    errors: int = 0


@dataclass(frozen=True)
class HonestAttempt:
    """The outcome of an honest attempt at a proposal: ``answer``, computed by ``calls``."""

    proposal: Proposal
    answer: str
    calls: tuple[ToolCallRecord, ...] = field(default=())


Teacher = Callable[[random.Random, list[Proposal]], Proposal]
"""One proposal, from what an honest teacher would have proposed: now, which comes first of the list, and before."""
Student = Callable[[random.Random, HonestAttempt], Attempt]


def _honest_first(name: str, _: object) -> tuple[bool, str]:
    return name != HONEST, name


_teachers = Registry[str, Teacher]("teachers", __name__, order=_honest_first)
_students = Registry[str, Student]("students", __name__, order=_honest_first)


def teacher(name: str) -> Callable[[Teacher], Teacher]:
    """Register a policy that plays the teacher, under ``name``."""
    return _teachers.adding(name, lambda policy: policy)


def student(name: str) -> Callable[[Student], Student]:
    """Register a policy that plays the student, under ``name``."""
    return _students.adding(name, lambda policy: policy)


def teacher_policies() -> dict[str, Teacher]:
    """Return every registered teacher policy by name, the honest one first."""
    return _teachers.all()


def student_policies() -> dict[str, Student]:
    """Return every registered student policy by name, the honest one first."""
    return _students.all()


def about(role: Role, name: str) -> str:
    """The docstring of a policy, on one line: what it does."""
    policy = teacher_policies()[name] if role == "teacher" else student_policies()[name]
    return " ".join((policy.__doc__ or "").split())
