"""Part of the rim: what the log has of an experiment: how it began, what it goes by, and its events, which are written
in parts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from agent0.assembly.runtime.stamping import recorded
from agent0.errors import ConfigError, NotFoundError, OperationError
from agent0.events.base import TOKEN, Event, Recorded
from agent0.events.benchmarks import TaskReviewed
from agent0.events.checkpoints import CheckpointTrained, TrainingMeasured
from agent0.events.experiments import PREFIX, ExperimentFinished, ExperimentStarted
from agent0.events.runs import RunStarted
from agent0.events.tasks import ResultVerified
from agent0.infra.log.event_log import Log
from agent0.verification.human_review import verdicts_of

PART = 500
"""Events that land together, all or none."""
REVIEWS = "reviews"
"""The name that stands for what persons decided (``agent0 task review``)."""


@dataclass(frozen=True)
class Progress:
    """Events read of all, and the time that took (seconds)."""

    done: int
    all: int
    wall_s: float

    @property
    def left_s(self) -> float:
        """At the rate so far."""
        return self.wall_s / self.done * (self.all - self.done) if self.done else 0.0


Report = Callable[[Progress], None]


def experiment_id(name: str) -> str:
    """The run token of the experiment ``name``.

    Raises:
        ConfigError: a name that cannot be part of a subject.
    """
    token = f"{PREFIX}{name.removeprefix(PREFIX)}"
    if not TOKEN.fullmatch(token):
        raise ConfigError(
            f"An experiment cannot be named {name[:80]!r}.", fix="Use letters, digits, '_' and '-', at most 60."
        )
    return token


async def begun_as(log: Log, experiment: str) -> ExperimentStarted | None:
    """What the experiment asked when it began, None where it has not."""
    async for stored in log.read(experiment, ["ExperimentStarted"]):
        if isinstance(stored.event, ExperimentStarted):
            return stored.event
    return None


async def start_of_run(log: Log, run: str) -> RunStarted:
    """How ``run`` began.

    Raises:
        NotFoundError: no such run.
    """
    async for stored in log.read(run, ["RunStarted"]):
        if isinstance(stored.event, RunStarted):
            return stored.event
    raise NotFoundError(f"There is no run {run!r}.", fix="See: agent0 run list")


async def extent(log: Log, run: str, begun: ExperimentStarted | None) -> int:
    """How far an experiment on ``run`` looks: as far as it did when it began, else to the run's present end."""
    return begun.until if begun is not None and begun.run == run else await log.last_seq(run)


async def verdicts_of_source(log: Log, run: str, source: str) -> dict[str, ResultVerified]:
    """By attempt of ``run``, what a finished experiment decided, or what persons did (``REVIEWS``); nothing where no
    source is named.

    Raises:
        NotFoundError: there is no such finished experiment.
        OperationError: it decided nothing, or about another run.
    """
    if not source:
        return {}
    if source == REVIEWS:
        reviews = [r.event async for r in log.read(run, ["TaskReviewed"])]
        return verdicts_of(event for event in reviews if isinstance(event, TaskReviewed))
    events = [r.event async for r in log.read(experiment_id(source))]
    begun = next((event for event in events if isinstance(event, ExperimentStarted)), None)
    finished = any(isinstance(event, ExperimentFinished) for event in events)
    if begun is None or not finished:
        raise NotFoundError(f"There is no finished experiment {source!r}.", fix="See: agent0 experiment list")
    if begun.kind != "reverify" or begun.run != run:
        why = f"It is a {begun.kind} of {begun.run}."
        raise OperationError(f"Experiment {source} holds no verdicts of {run}.", why, "See: agent0 experiment list")
    return {event.attempt: event for event in events if isinstance(event, ResultVerified)}


async def behind_training(log: Log, started: ExperimentStarted) -> tuple[ExperimentStarted | None, str]:
    """Find the receipts a training used: the experiment that assigned them (None: the run itself), and its token. A
    training that starts from another training uses the receipts of that one."""
    while (begun := await experiment_of(log, started.source)) and begun.kind == "retrain":
        started = begun
    return (begun, experiment_id(started.source)) if begun else (None, started.run)


async def experiment_of(log: Log, source: str) -> ExperimentStarted | None:
    """How the experiment ``source`` began; None where that names a run, or nothing."""
    is_run = not source.startswith(PREFIX) and await log.last_seq(source)
    return None if is_run else await begun_as(log, experiment_id(source))


def named(experiment: str, event: Event, id: str, cause: str = "") -> Recorded:
    """``event`` as what ``experiment`` says, under an ``id`` that is the same however often it is said."""
    return recorded(experiment, event).model_copy(update={"id": id, "cause": cause})


async def append_new(log: Log, events: Iterable[Recorded], stored_ids: set[str]) -> None:
    """What is not stored yet, in parts that land all or none."""
    left = (each for each in events if each.id not in stored_ids)
    while part := list(islice(left, PART)):
        await log.append(part)


def training_events(stored_events: Iterable[Recorded], checkpoint: str) -> list[Event]:
    """Return the steps and the end of a training of an experiment that is over; nothing where it is not."""
    events = [stored.event for stored in stored_events]
    trainings = (event for event in events if isinstance(event, TrainingMeasured | CheckpointTrained))
    training: list[Event] = [event for event in trainings if event.checkpoint == checkpoint]
    return training if any(isinstance(event, CheckpointTrained) for event in training) else []
