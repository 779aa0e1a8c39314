"""How much training on each part of an iteration's accepted answers helps the student, measured by short trainings that
are thrown away (arXiv 2601.18778)."""

from events.base import Event
from events.values import Artifact


class GainRequested(Event):
    """Measure what training on parts of an iteration's accepted answers, after < seq <= until, does for the student
    (``advance_run``)."""

    measurement: str
    """Its id, such as ``gain-3`` of iteration 3."""
    iteration: int
    student: str
    """Checkpoint id of the student that every short training begins with."""
    adapter: Artifact | None = None
    after: int
    until: int
    replay_after: int
    """Answers of earlier iterations are replayed from here on, the same for every part."""
    seed: int
    state_sha: str

    @property
    def task(self) -> str:
        """Subject token: a measurement with all its results is one wildcard."""
        return self.measurement


class ProbeSelected(Event):
    """What a measurement trains on and is scored on (``measure_gain``): training-split tasks just beyond the student's
    frontier, none of which it solves, so that its accuracy on them before is 0."""

    measurement: str
    iteration: int
    subsets: tuple[tuple[str, ...], ...] = ()
    """Ids of the tasks whose accepted answers are trained on together; empty: nothing is measured."""
    levels: tuple[int, ...] = ()
    """Of the probe: those that were drawn from."""
    drawn: int = 0
    """Tasks that the student tried for it."""
    n: int = 0
    """Of these, the tasks that it does not solve, and that are kept."""
    tasks: Artifact | None = None
    """JSON lines, one a task of the probe."""
    problem: str = ""
    """Why nothing is measured; empty where something is."""
    tokens: int = 0
    """That the student wrote for it."""

    @property
    def task(self) -> str:
        """Subject token: the measurement."""
        return self.measurement


class SubsetMeasured(Event):
    """What one short training came to (``measure_gain``). Its adapter is deleted: it is no checkpoint."""

    measurement: str
    iteration: int
    number: int
    """The subset's place, from 0."""
    gain: float
    """Accuracy on the probe after the training less that before it."""
    outcomes: str
    """One character a task of the probe: 1 solved, 0 not, ? undecided."""
    samples: int
    """Accepted answers of the subset."""
    replay: int
    """Earlier answers that were replayed."""
    steps: int
    tokens: int = 0
    """That the trained student wrote for the probe."""
    wall_s: float = 0.0
    """Of the training."""

    @property
    def task(self) -> str:
        """Subject token: the measurement."""
        return self.measurement
