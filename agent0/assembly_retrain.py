"""Part of the rim: new checkpoints from stored trajectories. No task is asked and no attempt is made again."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent0.assembly import check_names, open_log, open_port, recorded
from agent0.assembly_branches import state_at
from agent0.assembly_experiments import append_new
from agent0.branches import Branches
from agent0.configuration import amended, config_of
from agent0.errors import ConfigError, NotFoundError, OperationError
from agent0.experiments import experiment_id, told_id
from agent0.making import make_checkpoint
from agent0.manifests import canonical
from agent0.run import RunState
from agent0.settings import RunConfig, Settings
from agent0.substitution import Deed, Substituted
from events.base import Event, Recorded, sha256
from events.checkpoints import CheckpointEvaluated, CheckpointTrained, EvaluationRequested, TrainingRequested
from events.experiments import ExperimentFinished, ExperimentStarted
from events.tasks import ResultVerified, RewardAssigned, TaskRequested
from events.values import Artifact, Role

if TYPE_CHECKING:
    from infra.log import Log

BASE = "base"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Retrain:
    """What is asked: the checkpoints of ``source`` (a run or an experiment) once more, from its rewards, with
    ``changes`` of the run's settings and without the tasks ``purged``. ``evaluate``: score each on validation."""

    source: str
    name: str
    changes: Mapping[str, str] = field(default_factory=dict)
    purged: tuple[str, ...] = ()
    roles: tuple[Role, ...] = ("student",)
    evaluate: bool = True


@dataclass
class _Past:
    """What was stored: requests in order, and what stands for the run's own rewards and verdicts."""

    run: str
    until: int
    state: RunState
    requests: list[Recorded]
    rewards: dict[Deed, RewardAssigned]
    verdicts: dict[str, ResultVerified]


async def retrain(settings: Settings, asked: Retrain, tell: Tell = lambda _: None) -> dict[str, Any]:
    """Train and write down, checkpoint by checkpoint; killed, the same command goes on with the next.

    Raises:
        NotFoundError: no such run, experiment or task.
        OperationError: the experiment is unfinished, nothing was ever trained, or the name asked something else.
    """
    name = experiment_id(asked.name)
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_log(settings))
        past = await _past(log, asked)
        plan = amended(past.state.config, asked.changes)
        check_names(plan)
        start = _start(name, asked, past, plan)
        held = [r async for r in log.read(name)]
        _check_same(name, held, start)
        known = {r.id for r in held}
        await append_new(log, [_named(name, start, told_id(name, "start", 0))], known)
        works = await _open(settings, stack)
        trained = await _train(log, name, asked, past, plan, works, held, tell)
        end = ExperimentFinished(
            kind="retrain",
            events=len(trained),
            sha256=sha256(canonical([[t.checkpoint, t.adapter.sha256 if t.adapter else ""] for t in trained])),
            summary={f"{t.checkpoint}.samples": float(t.samples) for t in trained},
        )
        await append_new(log, [_named(name, end, told_id(name, "end", 0))], known)
    return {
        "experiment": name,
        "run": past.run,
        "checkpoints": [
            {"checkpoint": t.checkpoint, "adapter": t.adapter.sha256 if t.adapter else None, "samples": t.samples}
            for t in trained
        ],
    }


async def _past(log: "Log", asked: Retrain) -> _Past:
    run = asked.source
    rewards: dict[Deed, RewardAssigned] = {}
    verdicts: dict[str, ResultVerified] = {}
    source = experiment_id(asked.source)
    if await log.last_seq(source):
        told = [r.event async for r in log.read(source)]
        started = next(e for e in told if isinstance(e, ExperimentStarted))
        if not any(isinstance(e, ExperimentFinished) for e in told):
            fix = "Run the command that began it again: it goes on."
            raise OperationError(f"Experiment {asked.source} is unfinished.", "It counts from its closing event.", fix)
        run = started.run
        rewards = {(e.task, e.attempt, e.role): e for e in told if isinstance(e, RewardAssigned)}
        verdicts = {e.attempt: e for e in told if isinstance(e, ResultVerified)}
    state = await state_at(log, run)
    history = Branches(log)
    types = ["TrainingRequested", "TaskRequested"]
    events = [r async for r in history.read(run, types)]
    known = {r.task for r in events if isinstance(r.event, TaskRequested)}
    for task in asked.purged:
        if task not in known:
            raise NotFoundError(f"Run {run} has no task {task!r}.", fix=f"See: agent0 task list {run}")
    requests = [r for r in events if isinstance(r.event, TrainingRequested) and r.event.role in asked.roles]
    if not requests:
        raise OperationError(f"Run {run} never trained a {' or a '.join(asked.roles)}.", "There is nothing to repeat.")
    return _Past(run, await log.last_seq(run), state, requests, rewards, verdicts)


def _start(name: str, asked: Retrain, past: _Past, plan: RunConfig) -> ExperimentStarted:
    plain, digest = config_of(plan)
    return ExperimentStarted(
        name=asked.name,
        kind="retrain",
        source=asked.source,
        run=past.run,
        until=max(request.seq for request in past.requests),
        policy={"training": plain["training"], "roles": list(asked.roles), "evaluate": asked.evaluate},
        policy_sha=digest,
        purged=asked.purged,
    )


def _check_same(name: str, held: list[Recorded], start: ExperimentStarted) -> None:
    before = next((r.event for r in held if isinstance(r.event, ExperimentStarted)), None)
    if before is not None and before != start:
        raise OperationError(f"Experiment {name} asked something else.", fix="Choose another name.")


async def _open(settings: Settings, stack: AsyncExitStack) -> dict[str, Any]:
    from infra.artifacts import FileArtifacts

    ports: dict[str, Any] = {"artifacts": FileArtifacts(settings.home)}
    for name in ("trainers", "models", "sandbox", "verifier_sandbox", "tool_cache", "web"):
        ports[name] = await open_port(name, settings, ports["artifacts"])
        if close := getattr(ports[name], "close", None):
            stack.push_async_callback(close)
    return ports


async def _train(
    log: "Log",
    name: str,
    asked: Retrain,
    past: _Past,
    plan: RunConfig,
    ports: dict[str, Any],
    held: list[Recorded],
    tell: Tell,
) -> list[CheckpointTrained]:
    """One request after the other: each goes on from what was made of its parent's."""
    history = Substituted(Branches(log), past.rewards, past.verdicts, frozenset(asked.purged))
    known = {r.id for r in held}
    made: dict[str, Artifact | None] = {BASE: None}
    out: list[CheckpointTrained] = []
    for told in past.requests:
        request = told.event
        assert isinstance(request, TrainingRequested)  # noqa: S101 - chosen so
        tell(f"{request.checkpoint} from {request.parent}")
        parent = _parent_adapter(made, request)
        done = _done(held, request.checkpoint)
        if done is None:
            again = request.model_copy(update={"parent_adapter": parent})
            events = await make_checkpoint(again, past.run, plan, ports["trainers"], history, ports["artifacts"])
            await append_new(log, [_named(name, e, told_id(name, told.id, n)) for n, e in enumerate(events)], known)
            done = next(e for e in events if isinstance(e, CheckpointTrained))
        made[f"{request.role}/{request.checkpoint}"] = done.adapter or parent
        out.append(done)
        if asked.evaluate and request.role == "student":
            await _evaluate(log, name, past, plan, ports, done, made, held)
    return out


def _parent_adapter(made: Mapping[str, Artifact | None], request: TrainingRequested) -> Artifact | None:
    """What was made of the parent; a parent from before the branch keeps its own adapter."""
    key = f"{request.role}/{request.parent}"
    return made.get(key, None if request.parent == BASE else request.parent_adapter)


def _done(held: list[Recorded], checkpoint: str) -> CheckpointTrained | None:
    for told in held:
        if isinstance(told.event, CheckpointTrained) and told.event.checkpoint == checkpoint:
            return told.event
    return None


async def _evaluate(
    log: "Log",
    name: str,
    past: _Past,
    plan: RunConfig,
    ports: dict[str, Any],
    trained: CheckpointTrained,
    made: Mapping[str, Artifact | None],
    held: list[Recorded],
) -> None:
    """On the validation tasks of the run, as the run scored its own."""
    from dataclasses import replace

    from agent0.assembly import known_handlers

    checks = {"checkpoint": trained.checkpoint, "split": "validation"}
    if any(isinstance(r.event, CheckpointEvaluated) and r.event.checkpoint == trained.checkpoint for r in held):
        return
    state = replace(past.state, config=plan)
    request = EvaluationRequested(
        evaluation=f"{trained.checkpoint}-validation",
        checkpoint=trained.checkpoint,
        adapter=made[f"student/{trained.checkpoint}"],
        iteration=trained.iteration,
        split="validation",
        n=plan.evaluation.validation,
        seed=plan.evaluation.seed,
        state_sha="",
    )
    handler = known_handlers(["evaluate_checkpoint"])["evaluate_checkpoint"]
    cause = _named(name, request, told_id(name, f"{checks}", 0))
    events = await handler(cause, state, ports)
    await append_new(
        log, [_named(name, e, told_id(name, f"{checks}", n + 1)) for n, e in enumerate(events)], {r.id for r in held}
    )


def _named(experiment: str, event: Event, id: str) -> Recorded:
    return recorded(experiment, event).model_copy(update={"id": id})


def roles_of(text: str) -> tuple[Role, ...]:
    """``student``, ``teacher`` or both, comma-separated.

    Raises:
        ConfigError: anything else.
    """
    known: dict[str, Role] = {"student": "student", "teacher": "teacher"}
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names or any(name not in known for name in names):
        raise ConfigError(f"{text!r} names no roles.", fix="Say student, teacher, or student,teacher.")
    return tuple(known[name] for name in dict.fromkeys(names))
