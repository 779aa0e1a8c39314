"""What a student is asked outside of any run, so that nothing is trained on it: a person's one task, whether or not the
student's run goes on; a file of questions (``agent0 batch run``), where nothing is judged; turns of conversations that
another program leads."""

from typing import Annotated, Any

from pydantic import Field

from agent0.events.base import Event
from agent0.events.digest import NOT_EMPTY
from agent0.events.values import Artifact, Capture, Conversation, End, Task, Trajectory, Turn, Usage

PREFIX = "submission-"
"""Tokens of submitted tasks begin so. Behind it come the events of attempts as runs have them."""


RECORDING = "recording-"
"""Tokens of conversations that other programs lead begin so."""


class TaskSubmitted(Event):
    """A person submitted a task (``solve_submission`` attempts and judges it), or, where it is about a repository, a
    ``turn`` of it has ended and another is submitted.

    ``source`` is the run whose student solves it, by ``config``, that run's settings; of a model without a run it is
    the submission itself. ``expected`` is the answer that the person holds for right; empty: it is computed, where it
    can be.
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
    turn: Annotated[int, NOT_EMPTY] = 0
    """Turns that the attempt has had."""
    progress: Annotated[Artifact | None, NOT_EMPTY] = None
    """The attempt after these."""


class BatchRunStarted(Event):
    """``agent0 batch run`` began: everything its answers depend on. ``source`` and ``out`` are absolute paths of the
    questions and of the answers, ``sha256`` is that of the questions, of which the first ``rows`` are answered."""

    source: str
    sha256: str
    rows: int
    out: str
    question: str
    """Column that holds the question."""
    id: str
    """Column that holds the row's id."""
    seed: int
    temperature: float
    domain: str
    profile: str
    actor: dict[str, Any]
    """Configuration of the student that answers."""
    adapter: Artifact | None = None
    checkpoint: str = "base"


class RowAnswered(Event):
    """A row has its answer, or there will be none. ``row`` counts from 1, blank lines aside. ``answer`` None: the
    student gave none; ``end`` None: it was not asked, or failed, and ``error`` says why."""

    row: int
    answer: str | None = None
    end: End | None = None
    error: str = ""
    turns: int = 0
    tool_calls: int = 0
    tool_ok: int = 0
    parse_errors: int = 0
    conversation: Conversation | None = None
    conversation_artifact: Artifact | None = None
    """The conversation where it is over 64 KB."""
    usage: Usage = Usage()
    wall_s: float = 0.0
    model: str = ""
    """That wrote the last turn."""
    authors: dict[str, int] = Field(default_factory=dict)
    """Turns that other models wrote than the one that was meant, by model."""

    @property
    def item(self) -> str:
        """The row as commands name it."""
        return f"row-{self.row}"


class BatchRunFinished(Event):
    """Every row has its answer, or an error. ``failed`` rows of ``rows`` have an error, ``unanswered`` ones neither."""

    rows: int
    answered: int
    unanswered: int
    failed: int


class TurnAnswered(Event):
    """A student answered a turn of a conversation that another program leads (``/v1/recordings/NAME``). ``turns`` are
    what it was asked with, ``text`` is what it wrote; the tokens of both are the trajectory."""

    student: str
    """RUN/CHECKPOINT, or ``router/`` and a role."""
    dialect: str
    """How it was asked: chat, messages or responses."""
    turns: tuple[Turn, ...] = ()
    turns_artifact: Artifact | None = None
    text: str
    finish: str
    trajectory: Trajectory | None = None
    trajectory_artifact: Artifact | None = None
    trajectory_problem: str = ""
    usage: Usage = Usage()
    model: str = ""
    seed: int = 0
    capture: Capture = ""
