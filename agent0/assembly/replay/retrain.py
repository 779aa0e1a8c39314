"""Part of the rim: new checkpoints from stored trajectories. No task is asked and no attempt is made again."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TypedDict

from agent0.assembly.evaluation.finished_items import FinishedItems
from agent0.assembly.evaluation.rollout_ports import open_rollout_ports
from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.replay.past_states import state_at
from agent0.assembly.replay.stored_experiments import (
    append_new,
    begun_as,
    behind_training,
    experiment_id,
    experiment_of,
    extent,
    named,
    start_of_run,
    training_events,
    verdicts_of_source,
)
from agent0.assembly.runtime.model_ports import OpenTrainers
from agent0.assembly.trajectories.foreign_training import foreign_request, require_asked, require_own_tokens
from agent0.assembly.validate.base_model import check_trained_on
from agent0.assembly.validate.replay_requirements import require_replay
from agent0.assembly.validate.run_config import check_names
from agent0.config.setting_entries import amended
from agent0.errors import ConfigError, DependencyError, NotFoundError, OperationError
from agent0.evaluation.item_events import checkpoint_evaluated
from agent0.evaluation.item_rollout import RolloutPorts
from agent0.events.base import Event, Recorded, sha256
from agent0.events.checkpoints import (
    CheckpointEvaluated,
    CheckpointTrained,
    EvaluationRequested,
    TrainingMeasured,
    TrainingRequested,
)
from agent0.events.experiments import ExperimentFinished, ExperimentStarted
from agent0.events.tasks import ResultVerified, RewardAssigned, TaskRequested
from agent0.events.values import Artifact, Role, TrainingStep
from agent0.experiments.compare_runs import AdapterRow, adapters_answer, compare_adapters
from agent0.experiments.experiment_events import check_same, experiment_event_id
from agent0.experiments.substitution import ReceiptKey, Substituted
from agent0.infra.log.event_log import Log
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.provenance.fork_history import Branches
from agent0.run.lifecycle import RunState
from agent0.settings import RunConfig, Settings
from agent0.training.manifest import canonical
from agent0.training.pipeline import make_checkpoint
from agent0.training.step_alarms import training_alarms

_WRITTEN: Mapping[Role, str] = {"student": "TaskAttempted", "teacher": "TaskProposed"}
"""What a role is trained on."""
Report = Callable[[str], None]


@dataclass(frozen=True)
class Retrain:
    """What is asked: the checkpoints of ``source`` (a run or an experiment) once more, from its rewards, with
    ``changes`` of the run's settings and without the tasks ``purged``. ``evaluate``: score each on validation.
    ``imported``: the attempts are another framework's, and models and recipe those of the settings."""

    source: str
    name: str
    changes: Mapping[str, str] = field(default_factory=dict)
    purged: tuple[str, ...] = ()
    roles: tuple[Role, ...] = ("student",)
    evaluate: bool = True
    imported: bool = False


class Retrained(TypedDict):
    """What came of it. ``sameness`` says in one sentence how ``adapters`` compare with the run's own. ``checkpoints``:
    ``checkpoint``, ``adapter`` (None: nothing was learned) and ``samples`` each. ``alarms``: what went wrong in the
    trainings, a sentence each."""

    experiment: str
    run: str
    adapters: Sequence[AdapterRow]
    sameness: str
    checkpoints: Sequence[Mapping[str, object]]
    alarms: Sequence[str]


@dataclass
class _Past:
    """What was stored: requests in order, and what stands for the run's own rewards and verdicts."""

    run: str
    state: RunState
    requests: list[Recorded]
    rewards: dict[ReceiptKey, RewardAssigned]
    verdicts: dict[str, ResultVerified]
    purged: tuple[str, ...]


@dataclass
class _Retraining:
    """One training experiment under way: what it has told, what it made of which parent, and the ports it opened."""

    log: Log
    name: str
    past: _Past
    plans: Mapping[str, RunConfig]
    stored: list[Recorded]
    settings: Settings
    stack: AsyncExitStack
    artifacts: FileArtifacts
    trainers: OpenTrainers
    _scoring: RolloutPorts | None = None
    adapters: dict[str, Artifact | None] = field(default_factory=dict)
    optimizers: dict[str, Artifact | None] = field(default_factory=dict)
    steps: dict[str, list[TrainingStep]] = field(default_factory=dict)
    alarms: list[str] = field(default_factory=list)

    @property
    def plan(self) -> RunConfig:
        """The settings of the run itself."""
        return self.plans[self.past.run]

    @property
    def history(self) -> Substituted:
        """The past that is trained on."""
        past = self.past
        return Substituted(Branches(self.log), past.rewards, past.verdicts, frozenset(past.purged))

    async def scoring(self) -> RolloutPorts:
        """The ports that scoring takes, opened once: a sandbox takes seconds, and only scores need one."""
        if self._scoring is None:
            self._scoring = await open_rollout_ports(self.settings, self.artifacts, self.stack, self.log)
        return self._scoring

    async def append(self, events: Sequence[tuple[Event, str]]) -> None:
        """Write down (event, id) that are not written yet, all or none."""
        await append_new(self.log, [named(self.name, event, id) for event, id in events], {r.id for r in self.stored})


async def retrain(settings: Settings, options: Retrain, report: Report = lambda _: None) -> Retrained:
    """Train and write down, checkpoint by checkpoint; killed, the same command goes on with the next.

    Raises:
        NotFoundError: no such run, experiment or task, or an artifact that would be trained on is gone.
        ConfigError: the base that the run was trained on is not here any more.
        OperationError: the experiment is unfinished, nothing was ever trained, the name asked something else, or
            attempts that were imported are not to be trained on.
        RequirementsError: something is missing that training or scoring needs.
    """
    name = experiment_id(options.name)
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_log(settings))
        past = await _past(log, options, settings)
        plans = await _plans(log, past, options, settings)
        plan = plans[past.run]
        if _models(plan) == _models(past.state.config):
            await check_trained_on(log, past.run, options.roles, plan)
        start = _start(name, options, past, plan)
        check_same(name, await begun_as(log, name), start)
        artifacts = artifact_store(settings)
        trainers = OpenTrainers(settings, artifacts)
        stack.push_async_callback(trainers.close)
        stored = [r async for r in log.read(name)]
        work = _Retraining(log, name, past, plans, stored, settings, stack, artifacts, trainers)
        await _check_artifacts(work, options.roles)
        await _open(work, options)
        await work.append([(start, experiment_event_id(name, "start", 0))])
        trained = await _train(work, options.evaluate, report)
        await work.append([(_end(trained), experiment_event_id(name, "end", 0))])
        return _summary(name, options, work, await _originals(log, past.run), trained)


async def _plans(log: Log, past: _Past, options: Retrain, settings: Settings) -> dict[str, RunConfig]:
    """The settings of the run, and of those it is a fork of where they trained what it goes on from: each as it was,
    but for what is changed for all."""
    plans = {}
    for run in dict.fromkeys([past.run, *(request.run for request in past.requests)]):
        config = past.state.config if run == past.run else (await state_at(log, run)).config
        plan = amended(config, options.changes, settings.home)
        plans[run] = plan.model_copy(update={"plugins": {**plan.plugins, **settings.run.plugins}})
        check_names(plans[run])
    return plans


def _summary(
    name: str,
    options: Retrain,
    work: _Retraining,
    originals: Mapping[str, CheckpointTrained],
    trained: Sequence[CheckpointTrained],
) -> Retrained:
    past, compared = work.past, compare_adapters(originals, trained)
    changed = bool(options.changes or past.purged or past.rewards or past.verdicts)
    return {
        "experiment": name,
        "run": past.run,
        "adapters": compared,
        "sameness": adapters_answer(compared, changed),
        "checkpoints": [
            {"checkpoint": t.checkpoint, "adapter": t.adapter.sha256 if t.adapter else None, "samples": t.samples}
            for t in trained
        ],
        "alarms": work.alarms,
    }


async def _open(work: _Retraining, options: Retrain) -> None:
    """Ask for all that is missing, and open what tests itself by being opened, before anything is written."""
    if any(isinstance(stored.event, ExperimentFinished) for stored in work.stored):
        return
    evaluates = options.evaluate and "student" in options.roles
    await require_replay(work.settings, [work.plan], options.roles, evaluate=evaluates)
    try:
        if evaluates:
            await work.scoring()
    except (ConfigError, DependencyError):
        await require_replay(work.settings, [work.plan], options.roles, evaluate=evaluates, opened=True)
        raise


def _models(plan: RunConfig) -> list[tuple[str, str]]:
    return [(actor.provider, actor.model) for actor in (plan.student, plan.teacher)]


async def _originals(log: Log, run: str) -> dict[str, CheckpointTrained]:
    """What the run itself trained, by checkpoint."""
    events = [r.event async for r in Branches(log).read(run, ["CheckpointTrained"])]
    return {event.checkpoint: event for event in events if isinstance(event, CheckpointTrained)}


def _end(trained: Sequence[CheckpointTrained]) -> ExperimentFinished:
    adapters = [[t.checkpoint, t.adapter.sha256 if t.adapter else ""] for t in trained]
    samples = {f"{t.checkpoint}.samples": float(t.samples) for t in trained}
    return ExperimentFinished(kind="retrain", events=len(trained), sha256=sha256(canonical(adapters)), summary=samples)


async def _past(log: Log, options: Retrain, settings: Settings) -> _Past:
    run, rewards, verdicts, purged = await _source(log, options)
    state = await state_at(log, run)
    start = await start_of_run(log, run)
    require_asked(run, start, options.roles, options.imported)
    if start.imported:
        plan = amended(settings.run, options.changes, settings.home)
        await require_own_tokens(log, run, start.imported, plan, artifact_store(settings))
        until = await extent(log, run, await begun_as(log, experiment_id(options.name)))
        request = foreign_request(run, until, plan.seed)
        return _Past(run, replace(state, config=settings.run), [request], rewards, verdicts, purged)
    history = Branches(log)
    types = ["TrainingRequested", "TaskRequested"]
    events = [r async for r in history.read(run, types)]
    task_ids = {r.task for r in events if isinstance(r.event, TaskRequested)}
    for task in purged:
        if task not in task_ids:
            raise NotFoundError(f"Run {run} has no task {task!r}.", fix=f"See: agent0 task list {run}")
    requests = [r for r in events if isinstance(r.event, TrainingRequested) and r.event.role in options.roles]
    if not requests:
        raise OperationError(
            f"Run {run} never trained a {' or a '.join(options.roles)}.", "There is nothing to repeat."
        )
    return _Past(run, state, requests, rewards, verdicts, purged)


async def _source(
    log: Log, options: Retrain
) -> tuple[str, dict[ReceiptKey, RewardAssigned], dict[str, ResultVerified], tuple[str, ...]]:
    """The run, what stands for its receipts and verdicts, and the tasks left out: by a training gone on from, too."""
    begun = await experiment_of(log, options.source)
    if begun is None:
        return options.source, {}, {}, options.purged
    purged = tuple(dict.fromkeys((*begun.purged, *options.purged)))
    payer, token = await behind_training(log, begun) if begun.kind == "retrain" else (begun, experiment_id(begun.name))
    for run in (begun, payer):
        await _check_finished(log, run)
    if payer is None:
        return begun.run, {}, {}, purged
    if payer.kind == "reverify":
        why, fix = (
            "It decided and paid nothing.",
            f"First: agent0 experiment rescore {payer.run} --verdicts {payer.name}",
        )
        raise OperationError(f"Experiment {payer.name} has no rewards.", why, f"{fix} --name NAME --commit")
    rewards_logged = [r.event async for r in log.read(token, ["RewardAssigned"])]
    rewards: dict[ReceiptKey, RewardAssigned] = {
        (e.task, e.attempt, e.role): e for e in rewards_logged if isinstance(e, RewardAssigned)
    }
    return begun.run, rewards, await verdicts_of_source(log, begun.run, str(payer.policy.get("verdicts", ""))), purged


async def _check_finished(log: Log, begun: ExperimentStarted | None) -> None:
    if begun is None:
        return
    async for _ in log.read(experiment_id(begun.name), ["ExperimentFinished"]):
        return
    fix = "Run the command that began it again: it goes on."
    raise OperationError(f"Experiment {begun.name} is unfinished.", "It counts from its closing event.", fix)


def _start(name: str, options: Retrain, past: _Past, plan: RunConfig) -> ExperimentStarted:
    plain, events_digest = plan.to_record()
    return ExperimentStarted(
        name=options.name,
        kind="retrain",
        source=options.source,
        run=past.run,
        until=max(request.seq for request in past.requests),
        policy={"training": plain["training"], "roles": list(options.roles), "evaluate": options.evaluate},
        policy_sha=events_digest,
        purged=past.purged,
    )


async def _check_artifacts(work: _Retraining, roles: Sequence[Role]) -> None:
    """Whatever will be trained on or from is there and whole, before anything is written."""
    past = work.past
    needed: dict[Artifact, str] = {}
    requests = [r.event for r in past.requests if isinstance(r.event, TrainingRequested)]
    made_here = {f"{request.role}/{request.checkpoint}" for request in requests}
    for request in requests:
        if request.parent_adapter and f"{request.role}/{request.parent}" not in made_here:
            needed[request.parent_adapter] = f"the adapter of {request.parent}"
    first = min(min(request.after, request.replay_after) for request in requests)
    types = [_WRITTEN[role] for role in roles]
    async for stored in work.history.read(
        past.run, types, after=first, until=max(request.until for request in requests)
    ):
        if artifact := getattr(stored.event, "trajectory_artifact", None):
            needed[artifact] = f"the trajectory of {stored.task if stored.attempt == '-' else stored.attempt}"
    for artifact, what in needed.items():
        if problem := await asyncio.to_thread(work.artifacts.verify, artifact):
            why = f"Artifact {artifact.sha256} is {problem}; it is {what}."
            fix = "Copy artifacts/ of the machine that wrote it, or leave that task out: --purge TASK."
            raise NotFoundError(f"Run {past.run} cannot be trained again.", why, fix)


async def _train(work: _Retraining, evaluate: bool, report: Report) -> list[CheckpointTrained]:
    """One request after the other: each goes on from what was made of its parent's; one from before the branch from
    the parent's own adapter."""
    out: list[CheckpointTrained] = []
    for stored in work.past.requests:
        request = stored.event
        assert isinstance(request, TrainingRequested)  # noqa: S101 - chosen so
        report(f"{request.checkpoint} from {request.parent}")
        parent = work.adapters.get(f"{request.role}/{request.parent}", request.parent_adapter)
        events = training_events(work.stored, request.checkpoint) or await _checkpoint(work, stored, parent)
        done = next(event for event in events if isinstance(event, CheckpointTrained))
        await _raise_alarms(work, events, done.role)
        key = f"{request.role}/{request.checkpoint}"
        work.adapters[key] = done.adapter or parent
        work.optimizers[key] = done.optimizer
        out.append(done)
        if evaluate and request.role == "student":
            await _evaluate(work, done)
    return out


async def _checkpoint(work: _Retraining, request: Recorded, parent: Artifact | None) -> list[Event]:
    assert isinstance(request.event, TrainingRequested)  # noqa: S101 - chosen so
    requested = request.event
    optimizer = work.optimizers.get(f"{requested.role}/{requested.parent}", requested.parent_optimizer)
    again = requested.model_copy(update={"parent_adapter": parent, "parent_optimizer": optimizer})
    plan = work.plans[request.run]
    events = await make_checkpoint(again, work.past.run, plan, work.trainers, work.history, work.artifacts)
    ids = (experiment_event_id(work.name, request.id, number) for number in range(len(events)))
    await work.append([*zip(events, ids, strict=True)])
    return events


async def _raise_alarms(work: _Retraining, events: Sequence[Event], role: Role) -> None:
    before = work.steps.setdefault(role, [])
    alarms = [*training_alarms(events, before, work.plan.training)]
    await work.append([(alarm, experiment_event_id(work.name, alarm.alarm, 2)) for alarm in alarms])
    work.alarms += [alarm.message for alarm in alarms]
    before += [step for event in events if isinstance(event, TrainingMeasured) for step in event.steps]


async def _evaluate(work: _Retraining, trained: CheckpointTrained) -> None:
    """On the validation tasks of the run, as the run scored its own."""
    if any(isinstance(r.event, CheckpointEvaluated) and r.event.checkpoint == trained.checkpoint for r in work.stored):
        return
    request = EvaluationRequested(
        evaluation=f"{trained.checkpoint}-validation",
        checkpoint=trained.checkpoint,
        adapter=work.adapters[f"student/{trained.checkpoint}"],
        iteration=trained.iteration,
        split="validation",
        n=work.plan.evaluation.validation,
        seed=work.plan.evaluation.seed,
        state_sha="",
    )
    key = str({"checkpoint": trained.checkpoint, "split": "validation"})
    kept = FinishedItems.of(work.settings)
    items = await kept.attempt(request, replace(work.past.state, config=work.plan), await work.scoring())
    event = checkpoint_evaluated(request, items, work.artifacts, work.plan)
    await work.append([(event, experiment_event_id(work.name, key, 1))])
    kept.forget(request, work.plan)
