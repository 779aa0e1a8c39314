"""Gains of the student that are measured: on which tasks, from which trainings, and who is paid for them when."""

import json
import random
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from agent0.assembly.validate.run_config import check_names
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.evaluation.gains import candidates, tasks_of
from agent0.events.alarms import ReactionDropped
from agent0.events.base import Recorded, record
from agent0.events.checkpoints import CheckpointTrained, TrainingRequested
from agent0.events.tasks import (
    GainRequested,
    ProbeSelected,
    ResultVerified,
    RewardAssigned,
    SubsetMeasured,
    TaskAccepted,
    TaskAttempted,
    TaskProposed,
)
from agent0.experiments.rescore import RescoredReceipt, rescore
from agent0.handlers import handlers
from agent0.ports.models import GenerateRequest, Generation
from agent0.ports.training import TrainingResult, TrainJob
from agent0.rewards.assign import assigned_rewards
from agent0.run.forking import redone
from agent0.run.lifecycle import RunState, evolve
from agent0.settings import RunConfig
from agent0.tasks.families import families
from agent0.tasks.splits import heldout, split_of_task
from tests.memory import MemoryArtifacts
from tests.play import finished, play
from tests.test_climb import ByRole, little
from tests.test_run import failing, sound
from tests.world import NOON, Opened, ports, started

REVERSAL = families()["reversal"]


class Learner:
    """Reverses strings of up to seven digits, and of longer ones as many as its adapter says, told by their digits."""

    name = "learner"

    def __init__(self, artifacts: MemoryArtifacts) -> None:
        self._artifacts = artifacts

    async def generate(self, request: GenerateRequest) -> Generation:
        params = next(filter(None, (REVERSAL.parse(turn.content) for turn in request.turns)))
        right = REVERSAL.solve(params)
        learned = json.loads(self._artifacts.get(request.adapter))["learned"] if request.adapter else 0
        knows = len(right) <= 7 or int(right[:4]) % 16 < learned
        text = f"\\boxed{{{right if knows else right[1:]}}}"
        return Generation(text, token_ids=(5, len(right)), logprobs=(-1.0, -1.0), prompt_ids=(1,), model=self.name)


class Counter:
    """A trainer whose adapter knows how long the answers were that it was trained on."""

    def __init__(self, artifacts: MemoryArtifacts) -> None:
        self._artifacts, self.jobs = artifacts, list[TrainJob]()

    async def train(self, job: TrainJob) -> TrainingResult:
        self.jobs.append(job)
        learned = sum(sample.trajectory.token_ids[-1] for sample in job.samples) % 16
        body = {"learned": learned, "by": dict(job.metadata)}
        made = self._artifacts.put(json.dumps(body, sort_keys=True).encode(), "application/json")
        return TrainingResult(made, {"steps": float(job.settings["steps"]), "seconds": 0.5})


class Writer:
    """A teacher that writes strings of 4 to 9 digits, some of them no task."""

    name = "writer"

    async def generate(self, request: GenerateRequest) -> Generation:
        rng = random.Random(request.sampling.seed)
        text = f"Reverse {rng.randrange(10**3, 10 ** rng.randrange(4, 10))}." if rng.random() < 0.9 else "Reverse"
        return Generation(text, token_ids=(5, 6), logprobs=(-1.0, -1.0), prompt_ids=(1,), model=self.name)


def plan(**gain: Any) -> RunConfig:
    plain = little().model_dump() | {"iterations": 3, "tasks": 14}
    plain["curriculum"]["kind"] = "teacher"
    plain["training"]["student"] |= {"every": 2, "window": 2}
    plain["training"]["teacher"] = {"objective": "awr", "window": 2, "steps": 2, "minibatch": 4}
    plain["rewards"] = {"weights": {"student_gain": 4.0, "variance": 1.0}, "gain": {"subsets": 3, "probe": 10, **gain}}
    return RunConfig.model_validate(plain)


def world() -> dict[str, Any]:
    held = ports()
    held["models"] = ByRole(Learner(held["artifacts"]), Writer())
    held["trainers"] = Opened(Counter(held["artifacts"]))
    return held


@cache
def told(split: str = "level") -> tuple[list[Recorded], dict[str, Any]]:
    held = world()
    return finished(play(started(plan(split=split)), held)), held


def of(kind: type, events: Sequence[Recorded]) -> list[Any]:
    return [event.event for event in events if isinstance(event.event, kind)]


def state_at(seq: int) -> RunState:
    state: RunState | None = None
    for one in told()[0][:seq]:
        state = evolve(state, one)
    assert state
    return state


def test_gains_are_measured_between_the_last_verdict_and_the_rewards_that_they_are_part_of() -> None:
    events, _ = told()
    kinds = (ResultVerified, GainRequested, ProbeSelected, SubsetMeasured, RewardAssigned, TrainingRequested)
    places: dict[tuple[str, int], list[int]] = {}
    for event in events:
        if isinstance(event.event, RewardAssigned) and (event.event.role == "student" or event.event.facts["reason"]):
            continue
        if isinstance(event.event, kinds):
            places.setdefault((event.type, event.event.iteration), []).append(event.seq)
    for iteration in range(3):
        order = [places[kind.__name__, iteration] for kind in kinds]
        assert [len(found) for found in order[1:4]] == [1, 1, 3]
        assert all(max(before) < min(after) for before, after in pairwise(order))


def test_each_task_earns_the_gain_of_its_part_and_an_unsolved_one_nothing() -> None:
    events, _ = told()
    probes = {one.iteration: one for one in of(ProbeSelected, events)}
    gains: dict[tuple[int, int], float] = {(e.iteration, e.number): e.gain for e in of(SubsetMeasured, events)}
    paid = [e for e in of(RewardAssigned, events) if e.role == "teacher" and not e.facts["reason"]]
    assert len(paid) == len(of(TaskAccepted, events)) and len(set(gains.values())) > 2
    for reward in paid:
        parts = [n for n, names in enumerate(probes[reward.iteration].subsets) if reward.task in names]
        expected = gains[reward.iteration, parts[0]] if parts else 0.0
        assert reward.facts["student_gain"] == expected and bool(parts) == (reward.facts["solve_rate"] > 0)
        part = next(part for part in reward.parts if part.name == "student_gain")
        assert (part.value, part.weight) == (expected, 4.0)
    assert any(not reward.facts["solve_rate"] for reward in paid)


@pytest.mark.parametrize("split", ["level", "chance"])
def test_parts_are_the_solved_tasks_split_evenly_by_the_seed(split: str) -> None:
    events, _ = told(split)
    right = {e.attempt for e in of(ResultVerified, events) if e.correct}
    levels = {e.task: e.proposal.level for e in of(TaskProposed, events) if e.proposal}
    apart = 0
    for probe in of(ProbeSelected, events):
        solved = {e.task for e in of(TaskAttempted, events) if e.attempt in right and e.iteration == probe.iteration}
        assert sorted(name for names in probe.subsets for name in names) == sorted(solved)
        assert max(map(len, probe.subsets)) - min(map(len, probe.subsets)) <= 1
        spans = [[levels[name] for name in names] for names in probe.subsets]
        apart += all(max(low) <= min(high) for low, high in pairwise(spans))
    assert apart == 3 if split == "level" else apart < 3


def test_the_probe_is_of_the_training_split_beyond_the_frontier_and_nothing_in_it_is_trained_on_or_solved() -> None:
    events, held = told()
    used = {e.proposal.canonical for e in of(TaskAccepted, events)}
    kept = {task.canonical for task in heldout("validation", 40, 1, ("math",), names=("reversal",), levels=(8, 9))}
    for probe in of(ProbeSelected, events):
        tasks = tasks_of(held["artifacts"].get(probe.tasks))
        assert len(tasks) == probe.n <= 10 and probe.drawn == 20
        assert {split_of_task(task) for task in tasks} == {"train"} and not {t.canonical for t in tasks} & (used | kept)
        assert {task.level for task in tasks} <= set(probe.levels) and min(probe.levels) >= 7
    first = of(ProbeSelected, events)[0]
    assert all(task.level > 7 for task in tasks_of(held["artifacts"].get(first.tasks))), "the base solves seven"


def test_tasks_that_may_be_trained_on_are_not_drawn_for_the_probe() -> None:
    events, _ = told()
    asked = next(event for event in events if isinstance(event.event, GainRequested))
    assert isinstance(asked.event, GainRequested)
    state = state_at(asked.seq)
    first = {task.canonical for task in candidates(asked.event, state, frozenset())}
    assert len(first) == 20 and not first & {task.canonical for task in candidates(asked.event, state, first)}


def test_short_trainings_differ_in_their_part_alone_and_leave_no_adapter() -> None:
    events, held = told()
    jobs = [job for job in held["trainers"].open("").jobs if job.metadata["checkpoint"].startswith("gain-2")]
    measured = [e for e in of(SubsetMeasured, events) if e.iteration == 2]
    assert [len(job.samples) for job in jobs] == [e.samples for e in measured] and len(jobs) == 3
    assert {(job.seed, job.replay, job.parent and job.parent.sha256) for job in jobs} == {
        (jobs[0].seed, jobs[0].replay, of(CheckpointTrained, events)[1].adapter.sha256)
    }
    assert {e.replay for e in of(SubsetMeasured, events) if e.iteration == 0} == {0}, "only earlier answers are"
    assert jobs[0].replay and {job.settings["steps"] for job in jobs} == {8} == {e.steps for e in measured}
    (trained,) = (job for job in held["trainers"].open("").jobs if job.metadata["checkpoint"] == "student-1")
    assert trained.settings["steps"] == 2 and {
        k: v for k, v in jobs[0].settings.items() if k not in ("steps", "lr")
    } == {k: v for k, v in trained.settings.items() if k not in ("steps", "lr")}
    kept = [body for body in held["artifacts"].held.values() if b'"learned"' in body]
    assert kept and not any(b"gain-" in body for body in kept)


async def test_a_result_that_is_in_the_log_is_not_measured_again() -> None:
    events, held = told()
    results = [event for event in events if isinstance(event.event, SubsetMeasured)]
    for place, one in enumerate(results[:3]):
        again = await handlers()["measure_gain"](
            one, state_at(one.seq), {**held, "history": None} if place == 2 else {**held, "history": _Past(events)}
        )
        expected = [results[place + 1].event] if place < 2 else []
        assert again == expected


class _Past:
    """The stored events of the one run."""

    def __init__(self, events: Sequence[Recorded]) -> None:
        self._events = events

    async def read(self, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0) -> Any:
        for event in self._events:
            if after < event.seq <= until and event.type in types:
                yield event


def test_rewards_are_recomputed_from_the_gains_in_the_log() -> None:
    events, _ = told()
    own = {one.id: one.reward for one in rescore(events) if isinstance(one, RescoredReceipt)}
    assert own == {event.id: event.event for event in events if isinstance(event.event, RewardAssigned)}


def test_a_measurement_that_is_given_up_leaves_the_gains_unknown_and_the_run_goes_on() -> None:
    events, _ = told()
    at = next(event for event in events if isinstance(event.event, SubsetMeasured))
    state: RunState | None = state_at(at.seq)
    drop = ReactionDropped(
        failure="f", cause_id=at.id, cause_type=at.type, cause_task=at.task, failed_handler="measure_gain", reason="no"
    )
    given_up = record(drop, run=at.run, time=NOON).model_copy(update={"seq": at.seq + 1})
    state = evolve(state, given_up)
    assert state and state.phase == "measuring" and not state.pending
    rewards = assigned_rewards(drop, state)
    accepted = [task for task in state.tasks.values() if task.accepted]
    assert len(rewards) == len(accepted) and {reward.facts["student_gain"] for reward in rewards} == {None}
    for n, one in enumerate(rewards, 2):
        state = evolve(state, record(one, run=at.run, time=NOON).model_copy(update={"seq": at.seq + n}))
    assert state and state.phase == "training"


@pytest.mark.parametrize(
    ("name", "chosen", "seed"),
    [
        ("measure_gain", (), None),
        ("measure_gain", (1, 6), 3),
        ("assign_reward", (), 4),
        ("assign_reward", range(8, 40, 5), 5),
        ("verify_result", (0, 3), 6),
        ("measure_gain", (99,), 7),
    ],
)
def test_a_run_ends_whatever_is_given_up_and_in_whichever_order(
    name: str, chosen: Sequence[int], seed: int | None
) -> None:
    config = plan().model_copy(update={"iterations": 2, "max_given_up": 1.0, "max_untrained": 0})
    pick = random.Random(seed).randrange if seed is not None else lambda _: 0
    events = finished(play(started(config), world(), failing(name, chosen), pick=pick))
    assert events[-1].type == "RunFinished"
    sound(events)
    measured = [event for event in events if isinstance(event.event, SubsetMeasured)]
    assert len({(one.task, one.event.number) for one in measured}) == len(measured)
    if name == "measure_gain" and chosen == (99,):
        assert len(measured) == 6 and [e.gain for e in of(SubsetMeasured, events)] == [
            e.gain for e in of(SubsetMeasured, told()[0]) if e.iteration < 2
        ], "which comes first changes nothing"


def test_a_fork_in_the_middle_of_an_iteration_keeps_what_is_done_where_it_is_measured_too() -> None:
    events, _ = told()
    asked = next(event for event in events if isinstance(event.event, GainRequested))
    last = max(event.seq for event in events if isinstance(event.event, RewardAssigned) and event.seq < asked.seq)
    state = state_at(last - 1)
    ready = {name for name, task in state.tasks.items() if task.ready}
    assert len(ready) == 13 and set(redone(state, plan())) == set(state.tasks) - ready
    unmeasured = {name for name, task in state.tasks.items() if task.closed}
    assert set(redone(state, plan(subsets=0))) == set(state.tasks) - unmeasured


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"rewards.weights.student_gain": "1"}, "No gain is measured"),
        ({"rewards.gain.subsets": "1"}, "nothing to compare"),
        ({"rewards.gain.subsets": "4", "training.student.enabled": "false"}, "learns in steps"),
        ({"rewards.gain.subsets": "4", "curriculum.families": '["linear"]', "evaluation.levels": "[1]",
          "curriculum.levels": "[1]"}, "not every family is a ladder"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused_by_name(settings: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_names(load("climb-teacher", {f"run.{key}": value for key, value in settings.items()}, {}).run)
