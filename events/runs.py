"""What happens to a run as a whole. A fork is a run whose start names a parent; an experiment is such a fork."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from agent0.events.base import Event
from agent0.events.values import Artifact, ImportedFile

PRIORITY = 10
"""Of a run that names none."""
PRIORITIES = (1, 100)
"""The lowest and the highest."""


class RunStarted(Event):
    """A run began: its whole resolved configuration (no secrets) is recorded here.

    Logs written before 0.1.0 have version 1, and are refused.
    """

    version: ClassVar[int] = 2
    name: str
    profile: str
    seed: int
    config: dict[str, Any]
    config_sha: str
    rules: dict[str, int] = Field(default_factory=dict)
    """Rule -> number of the version that the run is under (``agent0.state.rules``)."""
    servers: dict[str, str] = Field(default_factory=dict)
    """Role -> addresses of its model's servers, which are no part of ``config``."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """Prompt name -> content hash."""
    parent: str = ""
    parent_seq: int = 0
    changes: dict[str, Any] = Field(default_factory=dict)
    """Of a fork: settings that differ from its parent's, by dotted key."""
    redone: tuple[str, ...] = ()
    """Of a fork: tasks under way at ``parent_seq``, which it asks for again; their past is its parent's alone."""
    student_adapter: Artifact | None = None
    """What its student began with, as the checkpoint ``base`` has it, and each fork of it. None: the model alone."""
    student_base: str = ""
    """sha256 of the weights that ``student_adapter`` is of (``agent0.infra.weights.safetensors_io.digest``)."""
    another_base: bool = False
    """Of a fork: its student is another model than its parent's, and none of its checkpoints; it is scored first."""
    imported: ImportedFile | None = None
    """The file that its attempts were imported from: nothing of it is executed. None: it is a run of ours."""
    priority: int = PRIORITY
    """Its weight where runs share a worker's slots."""


class PriorityChanged(Event):
    """A person gave a run another weight where runs share a worker's slots."""

    priority: int


class RunPaused(Event):
    """The run is paused: nothing new begins until it is resumed; nothing is lost."""

    reason: str = ""


class RunResumed(Event):
    """A paused run continues with everything that was left over."""

    reason: str = ""
    servers: dict[str, str] = Field(default_factory=dict)
    """As in ``RunStarted``, of roles whose servers are others from here on."""


class RunCancelled(Event):
    """The run was cancelled and ends here for good."""

    reason: str = ""


class IterationMeasured(Event):
    """The measures of an iteration's tasks and attempts, before anything is trained on them (``measure_iteration``).

    ``measures`` are the numbers of ``agent0.run.monitors.iteration_metrics.MEANING`` by name; unknown ones are absent.
    """

    iteration: int
    student: str
    teacher: str
    measures: dict[str, float]


class RunFailed(Event):
    """The run stopped since what it makes would be worth little; ``RunResumed`` continues it all the same.

    ``cause_kind``: too many attempts of an iteration were given up (``run.max_given_up``), there was nothing to train
    on for too many iterations in a row (``run.max_untrained``), or a dependency stayed away (``run.give_up_after``).
    """

    reason: str
    """The cause, in one line."""
    cause_kind: Literal["given_up", "untrained", "dependency"]
    iteration: int
    state_sha: str


class RunFinished(Event):
    """Every iteration and the final evaluation of the run are done."""

    iterations: int
    tasks: int
    attempts: int
    state_sha: str


class RunLabelled(Event):
    """A person hid a run from lists, or showed it again, and named the tags and the note that it has from then on."""

    hidden: bool = False
    tags: tuple[str, ...] = ()
    by: str = ""
    note: str = ""


class RunDeleted(Event):
    """A person deleted a run that was over: the artifacts that nothing else names are thrown away. Its events stay in
    the log, so that every seal still verifies."""

    artifacts: int
    """How many were thrown away."""
    bytes: int
    archive: str = ""
    """File that it was exported to before; empty: none."""
    by: str = ""
    """Name of the key that asked, or of the user of the command line."""
    reason: str = ""
