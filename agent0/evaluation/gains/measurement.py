"""The measurement of gains: what it trains on and is scored on, and what each short training comes to."""

from statistics import fmean

from agent0.evaluation.gains.probe import candidates, lines_of, tasks_of, unsolved
from agent0.evaluation.item_rollout import RolloutPorts, attempt_greedily
from agent0.events.tasks import GainRequested, ProbeSelected, SubsetMeasured, TaskAccepted
from agent0.events.values import Task
from agent0.ports.storage import Artifacts, History
from agent0.ports.training import Trainers
from agent0.state.run_state import GainState, RunState
from agent0.training.subset_training import collect_accepted, split_tasks, subset_job

MARKS = {True: "1", False: "0", None: "?"}


async def draw_probe(
    request: GainRequested, run: RunState, history: History, artifacts: Artifacts, ports: RolloutPorts
) -> ProbeSelected:
    """Split the tasks with accepted answers, draw tasks beyond the frontier, and keep those that the student does not
    solve. What cannot be measured is told as ``problem``. Errors as for ``attempt_item``."""
    plan = run.config.rewards.gain
    accepted = await collect_accepted(request, run.run, run.config, history, artifacts)
    subsets = split_tasks(accepted, plan, request.seed)
    if not subsets:
        return _nothing(request, f"{len(accepted.fresh)} tasks have an accepted answer: nothing to compare")
    try:
        drawn = candidates(request, run, await _trained_on(request, run.run, history))
    except ValueError as error:
        return _nothing(request, f"no tasks beyond the frontier: {error}")
    items = await attempt_greedily(drawn, request.adapter, run, ports)
    probe = unsolved(drawn, items, plan.probe)
    if not probe:
        return _nothing(request, f"the student solves all of {len(drawn)} tasks beyond its frontier")
    return ProbeSelected(
        measurement=request.measurement,
        iteration=request.iteration,
        subsets=subsets,
        levels=tuple(sorted({task.level for task in drawn})),
        drawn=len(drawn),
        n=len(probe),
        tasks=artifacts.put(lines_of(probe), "application/jsonl"),
        tokens=sum(item.tokens for item in items),
    )


async def measure_subset(
    measurement: GainState,
    run: RunState,
    trainers: Trainers,
    history: History,
    artifacts: Artifacts,
    ports: RolloutPorts,
) -> SubsetMeasured:
    """Train on the subset that is next, score the adapter on the probe and delete it.

    Raises:
        OperationError: the trainer failed.
        DependencyError, TransientError: as for ``attempt_item``.
    """
    request, probe, number = measurement.request, measurement.probe, len(measurement.gains)
    assert probe is not None and probe.tasks is not None  # noqa: S101 - the caller's next subset is of a probe
    accepted = await collect_accepted(request, run.run, run.config, history, artifacts)
    job = subset_job(request, number, probe.subsets[number], accepted, run.run, run.config)
    training = await trainers.open(run.config.student).train(job)
    try:
        items = await attempt_greedily(tasks_of(artifacts.get(probe.tasks)), training.adapter, run, ports)
    finally:
        artifacts.discard(training.adapter)
    return SubsetMeasured(
        measurement=request.measurement,
        iteration=request.iteration,
        number=number,
        gain=round(fmean(bool(item.correct) for item in items), 6),
        outcomes="".join(MARKS[item.correct] for item in items),
        samples=len(job.samples),
        replay=len(job.replay),
        steps=int(training.metrics.get("steps", 0)),
        tokens=sum(item.tokens for item in items),
        wall_s=training.metrics.get("seconds", 0.0),
    )


async def _trained_on(request: GainRequested, run: str, history: History) -> frozenset[str]:
    """Canonical forms of the tasks whose answers may be trained on here."""
    after, kinds = min(request.after, request.replay_after), [TaskAccepted.__name__]
    proposals: list[Task] = [
        recorded.event.proposal
        async for recorded in history.read(run, kinds, after=after, until=request.until)
        if isinstance(recorded.event, TaskAccepted)
    ]
    return frozenset(task.canonical for task in proposals)


def _nothing(request: GainRequested, problem: str) -> ProbeSelected:
    return ProbeSelected(measurement=request.measurement, iteration=request.iteration, problem=problem)
