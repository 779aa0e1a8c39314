"""Short trainings of the student on parts of an iteration's accepted answers, to measure what each part is worth.

The recipe, the replayed answers, the order of minibatches and the number of steps are the same for every part, so that
the answers alone differ. Each adapter is scored and thrown away.
"""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from agent0.events.checkpoints import TrainingRequested
from agent0.events.tasks import GainRequested
from agent0.ports.storage import Artifacts, History
from agent0.ports.training import TrainJob
from agent0.settings import GainConfig, RunConfig
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
    return Accepted(
        accepted,
        [
            scored
            for scored in gated(past, plan.training.student.gate, plan.seed)
            if scored.iteration < request.iteration
        ],
    )


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
    chosen_before = plan.training.student.model_copy(update={"gate": VERIFIED, "steps": plan.rewards.gain.steps})
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
