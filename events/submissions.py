"""A task that a person submitted for a student to solve. It belongs to no run: nothing is trained on it, and it is
solved whether or not the student's run goes on."""

from typing import Any

from agent0.events.base import Event
from agent0.events.values import Artifact, Task

PREFIX = "submission-"
"""Tokens of submitted tasks begin so. Behind it come the events of attempts as runs have them."""


class TaskSubmitted(Event):
    """A person submitted a task (``solve_submission`` attempts and judges it).

    ``source`` is the run whose student solves it, by ``config``, that run's settings. ``expected`` is the answer that
    the person holds for right; empty: it is computed, where it can be.
    """

    task: str
    attempt: str
    source: str
    student: str
    adapter: Artifact | None = None
    proposal: Task
    expected: str = ""
    config: dict[str, Any]
    seed: int
    by: str = ""
    """Name of the key that it came with."""
