"""The measurement of gains: what training the student on parts of an iteration's accepted answers is worth, by how much
of a probe it solves then (tasks just beyond its frontier, not solved by it).

The recipe, the replayed answers, the order of minibatches and the number of steps are the same for every part, so that
the answers alone differ. Each adapter is scored and thrown away.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from agent0.evaluation.checkpoint_score import ScoredItem
from agent0.evaluation.item_rollout import RolloutPorts, attempt_greedily
from agent0.events.checkpoints import TrainingRequested
from agent0.events.tasks import GainRequested, ProbeSelected, SubsetMeasured, TaskAccepted
from agent0.events.values import Task
from agent0.ports.storage import Artifacts, History
from agent0.ports.training import Trainers, TrainJob
from agent0.settings import GainConfig, RunConfig
from agent0.state.measurements import GainState
from agent0.state.run_state import RunState
from agent0.tasks.families import Family, requested_families
from agent0.tasks.splits import heldout
from agent0.training.dataset import collect_trajectories
from agent0.training.gate import VERIFIED, gated
from agent0.training.manifest import adapter_metadata, dataset_sha, manifest
from agent0.training.pipeline import settings_of
from agent0.training.scored_trajectory import ScoredTrajectory
from agent0.training.selection import select, unusable_because


@dataclass(frozen=True)
class Accepted:
    """Accepted answers: of the iteration by task, and earlier ones, which may be replayed."""

    fresh: Mapping[str, Sequence[ScoredTrajectory]]
    past: Sequence[ScoredTrajectory]


async def collect_accepted(
    request: GainRequested, run: str, plan: RunConfig, history: History, artifacts: Artifacts
) -> Accepted:
    """Read the accepted answers that ``request`` is about; with those of a task goes the share of its attempts that
    were right. The result follows from the run and the request's bounds alone."""
    fresh, past = await collect_trajectories(run, _training(request, 0), history, artifacts)
    rates: dict[str, list[bool]] = defaultdict(list)
    for scored in fresh:
        rates[scored.group].append(scored.success)
    accepted: dict[str, list[ScoredTrajectory]] = {}
    for scored in gated(fresh, plan.training.student.gate, plan.seed):
        if scored.success and scored.author == request.student and not unusable_because(scored.trajectory):
            rate = sum(rates[scored.group]) / len(rates[scored.group])
            accepted.setdefault(scored.group, []).append(replace(scored, solve_rate=rate))
    earlier = gated(past, plan.training.student.gate, plan.seed)
    return Accepted(accepted, [scored for scored in earlier if scored.iteration < request.iteration])


def split_tasks(accepted: Accepted, gain: GainConfig, seed: int) -> tuple[tuple[str, ...], ...]:
    """Split the tasks with accepted answers into ``gain.subsets`` parts of like size, as ``gain.split`` says; into none
    where there are fewer tasks than two."""
    names = random.Random(f"subsets {seed}").sample(sorted(accepted.fresh), len(accepted.fresh))
    if gain.split == "level":
        names = sorted(names, key=lambda name: accepted.fresh[name][0].level)
    parts = min(gain.subsets, len(names))
    bounds = [len(names) * number // parts for number in range(parts + 1)] if parts > 1 else []
    return tuple(tuple(names[begin:end]) for begin, end in pairwise(bounds))


def subset_job(
    request: GainRequested, number: int, tasks: Sequence[str], accepted: Accepted, run: str, plan: RunConfig
) -> TrainJob:
    """The training on the answers to ``tasks``, the subset ``number``: the student's recipe in
    ``run.rewards.gain.steps`` steps. Its metadata name the run, so that no other training has the same adapter."""
    chosen_before = plan.training.student.model_copy(
        update={"gate": VERIFIED, "steps": plan.rewards.gain.steps, "optimizer_state": "anew"}
    )
    short = plan.model_copy(update={"training": plan.training.model_copy(update={"student": chosen_before})})
    training_request = _training(request, number)
    fresh = [scored for name in tasks for scored in accepted.fresh[name]]
    chosen = select("student", fresh, accepted.past, author=request.student, config=short, seed=request.seed)
    settings = settings_of("student", request.iteration, short)
    noted = adapter_metadata(training_request, settings, dataset_sha(manifest(chosen, training_request, settings)))
    return TrainJob(chosen.samples, chosen.replay, request.adapter, request.seed, settings, {**noted, "run": run})


def _training(request: GainRequested, number: int) -> TrainingRequested:
    """The request as that of a training, whose checkpoint never comes to be."""
    return TrainingRequested(
        checkpoint=f"{request.measurement}-{number}",
        role="student",
        iteration=request.iteration,
        parent=request.student,
        parent_adapter=request.adapter,
        after=request.after,
        until=request.until,
        replay_after=request.replay_after,
        seed=request.seed,
        state_sha=request.state_sha,
    )


TRIED = 2
"""Tasks that the student tries, for each that the probe may hold: it may solve some."""
LEAST = 3
"""Tasks of a level, from which on its solve rate counts."""
SOLVED = 0.5


def frontiers(run: RunState) -> dict[str, int]:
    """The highest level of each family of which half of this iteration's attempts are right; at least
    ``curriculum.mastered``."""
    right: dict[tuple[str, int], list[list[bool]]] = defaultdict(list)
    for task in run.tasks.values():
        decided = [a.correct for a in task.attempts.values() if a.correct is not None]
        if task.proposal and decided:
            right[task.proposal.family, task.proposal.level].append(decided)
    levels = dict.fromkeys((family.name for family in _requested(run.config)), run.config.curriculum.mastered)
    for (name, level), tasks in right.items():
        verdicts = [verdict for decided in tasks for verdict in decided]
        if len(tasks) >= LEAST and sum(verdicts) >= SOLVED * len(verdicts):
            levels[name] = max(levels.get(name, 0), level)
    return levels


def candidates(request: GainRequested, run: RunState, without: AbstractSet[str]) -> list[Task]:
    """Draw the tasks that the student tries for the probe, families and levels alike, in an order by chance.

    They are of the training split, so in no held-out set, and none has a canonical form in ``without``.

    Raises:
        ValueError: there are not so many.
    """
    plan, requested = run.config.curriculum, _requested(run.config)
    at, drawn = frontiers(run), []
    for number, family in enumerate(requested):
        levels = _beyond(at[family.name], _top(family, run.config), plan.ahead)
        count = TRIED * run.config.rewards.gain.probe
        share = count // len(requested) + (number < count % len(requested))
        drawn += heldout(
            "train", share, request.seed, (family.domain,), names=(family.name,), levels=levels,
            without=without,
        )  # fmt: skip
    random.Random(f"probe {request.seed}").shuffle(drawn)
    return drawn


def unsolved(tasks: Iterable[Task], items: Iterable[ScoredItem], most: int) -> list[Task]:
    """The first ``most`` of ``tasks`` whose item is not right."""
    return [task for task, item in zip(tasks, items, strict=True) if not item.correct][:most]


def lines_of(tasks: Iterable[Task]) -> bytes:
    """Write ``tasks`` as JSON lines, in their order."""
    return "".join(f"{task.model_dump_json()}\n" for task in tasks).encode()


def tasks_of(lines: bytes) -> list[Task]:
    """Read the tasks that ``lines_of`` wrote, in their order."""
    return [Task.model_validate(json.loads(line)) for line in lines.splitlines()]


def _requested(config: RunConfig) -> list[Family]:
    plan = config.curriculum
    return [entry for domain in plan.domains for entry in requested_families(domain, plan.families).values()]


def _top(family: Family, config: RunConfig) -> int:
    """The highest level that may be asked: what is evaluated is known to fit the student's context."""
    levels = (*config.evaluation.levels, *config.curriculum.levels)
    return min(family.levels, max(levels, default=family.levels))


def _beyond(at: int, top: int, ahead: int) -> tuple[int, ...]:
    """The ``ahead`` levels above ``at``, or the highest ones there are."""
    end = min(at + ahead, top)
    return tuple(range(max(1, min(at + 1, end)), end + 1))


MARKS = {True: "1", False: "0", None: "?"}


async def draw_probe(
    request: GainRequested, run: RunState, history: History, artifacts: Artifacts, ports: RolloutPorts
) -> ProbeSelected:
    """Split the tasks with accepted answers, draw tasks beyond the frontier, and keep those that the student does not
    solve. ``problem`` says why something could not be measured. Errors as for ``attempt_item``."""
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
