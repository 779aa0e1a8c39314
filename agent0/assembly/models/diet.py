"""Part of the rim: reads from the log what every checkpoint of a run was trained on (``agent0.training.diet``), and
what became of its tasks: asked, accepted, finished, trained on, never."""

import json
from dataclasses import asdict, dataclass, field

from agent0.events.base import Recorded
from agent0.events.benchmarks import TaskReviewed
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.tasks import (
    AttemptRequested,
    ResultVerified,
    TaskAccepted,
    TaskAttempted,
    TaskProposed,
    TaskRequested,
)
from agent0.events.values import Trajectory
from agent0.infra.log.event_log import Log
from agent0.ports.storage import Artifacts
from agent0.provenance.fork_history import read_branch
from agent0.rollout.claim_check import redeem
from agent0.state.run_state import BASE
from agent0.stats.rank_test import RankTest, rank_test
from agent0.training.diet import Diet, diet_of

TYPES = ("TaskProposed", "TaskAttempted", "ResultVerified", "TaskReviewed", "CheckpointTrained")
LEDGER_TYPES = (
    "TaskRequested", "TaskAccepted", "AttemptRequested", "TaskAttempted", "ResultVerified", "CheckpointTrained",
)  # fmt: skip


async def diets(log: Log, artifacts: Artifacts, run: str) -> list[Diet]:
    """Read what each checkpoint of ``run``, and of the past that it shares with its parents, was trained on.

    Raises:
        NotFoundError: a manifest or a trajectory that is named is gone.
    """
    written: dict[str, Recorded] = {}
    right: dict[str, bool] = {}
    trained: list[CheckpointTrained] = []
    async for stored in read_branch(log, run, TYPES):
        match stored.event:
            case TaskAttempted() | TaskProposed():
                written[stored.id] = stored
            case ResultVerified() as event:
                right.setdefault(event.attempt, bool(event.correct))
            case TaskReviewed(correct=bool()) as event:
                right[event.attempt] = bool(event.correct)
            case CheckpointTrained() as event if event.manifest:
                trained.append(event)

    def sampled(stored: Recorded) -> Trajectory | None:
        event = stored.event
        assert isinstance(event, TaskAttempted | TaskProposed)  # noqa: S101 - only these are written
        return redeem(event.trajectory, event.trajectory_artifact, artifacts)

    def diet(training: CheckpointTrained) -> Diet:
        events = json.loads(artifacts.get(training.manifest)).get("events", ()) if training.manifest else ()
        authors = [BASE, *(other.checkpoint for other in trained if other.role == training.role)]
        return diet_of(training, events, written, sampled, right, authors)

    return [diet(training) for training in trained]


@dataclass
class LedgerTask:
    """One task: attempts that were asked for, ended and decided, and how often an attempt of it was trained on, each
    checkpoint once."""

    task: str
    iteration: int
    accepted: bool = False
    requested: int = 0
    ended: int = 0
    decided: int = 0
    trained: int = 0

    @property
    def finished(self) -> bool:
        """Whether all attempts that were asked for have ended."""
        return 0 < self.requested == self.ended


@dataclass(frozen=True)
class RunLedger:
    """The tasks of a run, and the test of whether attempts that were trained on are longer, in tokens that the student
    wrote, than others of the same verdict."""

    tasks: tuple[LedgerTask, ...]
    length: RankTest

    def counts(self) -> dict[str, int]:
        """Tasks by what they came to; ``never``: finished, and nothing of them was trained on."""
        finished = [task for task in self.tasks if task.finished]
        return {
            "asked": len(self.tasks),
            "accepted": sum(task.accepted for task in self.tasks),
            "finished": len(finished),
            "trained": sum(task.trained > 0 for task in self.tasks),
            "never": sum(not task.trained for task in finished),
        }

    def as_row(self) -> dict[str, object]:
        """All of it as JSON has it."""
        return {**self.counts(), "length": asdict(self.length), "tasks": [asdict(task) for task in self.tasks]}


async def run_ledger(log: Log, artifacts: Artifacts, run: str) -> RunLedger:
    """Read the ledger of ``run`` from its log.

    Raises:
        NotFoundError: what a training names as its manifest is gone.
    """
    entries = _Entries()
    async for stored in log.read(run, LEDGER_TYPES):
        if isinstance(stored.event, CheckpointTrained):
            entries.train(stored.event, artifacts)
        else:
            entries.take(stored)
    strata: dict[bool | None, tuple[list[float], list[float]]] = {}
    for name, attempt in entries.attempts.items():
        chosen, others = strata.setdefault(entries.verdicts.get(attempt.attempt), ([], []))
        (chosen if name in entries.trained else others).append(attempt.usage.completion_tokens)
    return RunLedger(tuple(entries.tasks.values()), rank_test([*strata.values()]))


@dataclass
class _Entries:
    """Events of a run read so far: attempts by the id of their event, verdicts by attempt, ids that were trained on."""

    tasks: dict[str, LedgerTask] = field(default_factory=dict)
    attempts: dict[str, TaskAttempted] = field(default_factory=dict)
    verdicts: dict[str, bool | None] = field(default_factory=dict)
    trained: set[str] = field(default_factory=set)

    def take(self, stored: Recorded) -> None:
        """Enter an event of a task."""
        if isinstance(stored.event, TaskRequested):
            self.tasks[stored.task] = LedgerTask(stored.task, stored.event.iteration)
        if (task := self.tasks.get(stored.task)) is None:
            return
        match stored.event:
            case TaskAccepted():
                task.accepted = True
            case AttemptRequested():
                task.requested += 1
            case TaskAttempted() as event:
                task.ended += 1
                self.attempts[stored.id] = event
            case ResultVerified(attempt=attempt, correct=correct) if attempt not in self.verdicts:
                task.decided += correct is not None
                self.verdicts[attempt] = correct

    def train(self, event: CheckpointTrained, artifacts: Artifacts) -> None:
        """Enter what a student's checkpoint was trained on."""
        if event.manifest is None or event.role != "student":
            return
        ids = set(json.loads(artifacts.get(event.manifest)).get("events", ())) & set(self.attempts)
        for name in ids:
            self.tasks[self.attempts[name].task].trained += 1
        self.trained |= ids
