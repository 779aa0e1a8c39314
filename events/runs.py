"""What happens to a run as a whole. A fork is a run whose start names a parent; an experiment is such a fork."""

from typing import Any

from pydantic import Field

from events.base import Event


class RunStarted(Event):
    """A run begins: its whole resolved configuration (no secrets) is part of the fact."""

    name: str
    profile: str
    seed: int
    config: dict[str, Any]
    config_sha: str
    prompts: dict[str, str] = Field(default_factory=dict)
    """Prompt name -> content hash."""
    parent: str = ""
    parent_seq: int = 0
    changes: dict[str, Any] = Field(default_factory=dict)
    """Of a fork: settings that differ from its parent's, by dotted key."""
    redone: tuple[str, ...] = ()
    """Of a fork: tasks under way at ``parent_seq``, which it asks for again; their past is its parent's alone."""


class RunPaused(Event):
    """Nothing new is begun until the run is resumed; nothing is lost."""

    reason: str = ""


class RunResumed(Event):
    """The run goes on with everything that was left over."""

    reason: str = ""


class RunCancelled(Event):
    """The run ends here for good."""

    reason: str = ""


class IterationMeasured(Event):
    """What an iteration's tasks and attempts came to, before anything is trained on them (``measure_iteration``).

    ``measures`` are the numbers of ``agent0.run.monitors.iteration_metrics.MEANING`` by name; one that could not be
    known is absent.
    """

    iteration: int
    student: str
    teacher: str
    measures: dict[str, float]


class RunFinished(Event):
    """Everything that was asked for is done."""

    iterations: int
    tasks: int
    attempts: int
    state_sha: str
