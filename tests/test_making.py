"""From events to a job, a manifest and a checkpoint: the solve rate reaches the loss, and nothing is trained unseen."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
import torch

from agent0.errors import OperationError
from agent0.events.base import Event, Recorded, record
from agent0.events.checkpoints import CheckpointTrained, TrainingRequested
from agent0.events.experiments import DatasetSelected
from agent0.events.tasks import ResultVerified, RewardAssigned, TaskAttempted, TaskProposed
from agent0.events.values import RewardPart, Task, TrainingStep, Trajectory, Turn
from agent0.handlers.raise_alarm import raise_alarm
from agent0.infra.training.launch.recipe import Recipe
from agent0.ports.training import TrainingExample, TrainingResult, TrainJob
from agent0.settings import RecipeConfig, RunConfig
from agent0.state.run_state import RunState
from agent0.training.manifest import example_sha
from agent0.training.objectives import Loss, MinibatchRows, objectives
from agent0.training.objectives.adpo import ambiguity_scale, clip_high
from agent0.training.pipeline import make_checkpoint
from tests.memory import MemoryArtifacts

NOON = datetime(2026, 1, 1, tzinfo=UTC)
SIZE = 4
"""Attempts at each task."""


def path_of(number: int) -> Trajectory:
    """Two turns with tool output between, each attempt's own tokens."""
    return Trajectory(
        token_ids=(1, 2, 3 + number, 4, 5, 6 + number), mask=(0, 1, 1, 0, 0, 1), logprobs=(0, -0.5, -0.7, 0, 0, -0.9)
    )


def past(rates: Sequence[float]) -> list[Event]:
    """One task for each solve rate, its first attempts right."""
    told: list[Event] = []
    part = RewardPart(name="correctness", value=1.0)
    for n, rate in enumerate(rates):
        asked = Task(question="?", domain="math", family="sum", level=n + 1, canonical=f"c{n}")
        plain: dict[str, Any] = {"task": f"t0-{n}", "iteration": 0}
        told.append(TaskProposed(**plain, slot=n, teacher="base", text="?", proposal=asked, prompt="p"))
        for number in range(SIZE):
            right = number < rate * SIZE
            one = plain | {"attempt": f"t0-{n}-a{number}"}
            calls = (Turn(role="tool", name="python", content="1"),) * number
            told += [
                TaskAttempted(
                    **one, number=number, student="base", answer="1", end="answered", turns=2, tool_calls=1, tool_ok=1,
                    transcript=calls, trajectory=path_of(10 * n + number), prompt="p",
                ),
                ResultVerified(**one, correct=right, verifier="v", reason="r"),
                RewardAssigned(
                    **one, role="student", set="agent0", parts=(part,), total=float(right), checkpoint="base"
                ),
            ]  # fmt: skip
        facts = {"solve_rate": rate}
        told.append(
            RewardAssigned(
                **plain, role="teacher", set="agent0", parts=(part,), total=0.5, checkpoint="base", facts=facts
            )
        )
    return told


@dataclass
class Past:
    """Plays ``History``."""

    events: list[Recorded]

    async def read(
        self, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0
    ) -> AsyncIterator[Recorded]:
        for recorded in self.events:
            if after < recorded.seq and recorded.type in types:
                yield recorded


@dataclass
class Bench:
    """Plays ``Trainers`` and their trainer: keeps the jobs it gets."""

    artifacts: MemoryArtifacts
    metrics: dict[str, float] = field(default_factory=dict)
    jobs: list[TrainJob] = field(default_factory=list)
    steps: tuple[TrainingStep, ...] = ()

    def open(self, _: object) -> "Bench":
        return self

    async def train(self, job: TrainJob) -> TrainingResult:
        self.jobs.append(job)
        return TrainingResult(self.artifacts.put(b"adapter"), self.metrics, steps=self.steps)


ASKED = TrainingRequested(
    checkpoint="student-0", role="student", iteration=0, parent="base", after=0, until=10**6, replay_after=0, seed=3,
    state_sha="",
)  # fmt: skip


async def made(
    recipe: dict[str, Any],
    rates: Sequence[float] = (0.25, 0.5, 0.75),
    metrics: Any = None,
    examples: Sequence[TrainingExample] = (),
    steps: tuple[TrainingStep, ...] = (),
    request: TrainingRequested = ASKED,
) -> tuple[TrainJob, list[Event], MemoryArtifacts]:
    artifacts = MemoryArtifacts()
    bench = Bench(artifacts, metrics or {"steps": 8.0}, steps=steps)
    plan = RunConfig.model_validate({"training": {"student": recipe}})
    history = Past(
        [record(e, run="r", time=NOON, id=f"e{n}").model_copy(update={"seq": n + 1}) for n, e in enumerate(past(rates))]
    )
    events = await make_checkpoint(request, "r", plan, bench, history, artifacts, examples)
    return bench.jobs[-1], events, artifacts


def loss_of(job: TrainJob) -> Loss:
    """As a trainer computes it, on log-probabilities that have moved."""
    recipe = Recipe(objective=job.settings.get("objective", "adpo"))
    moved = torch.tensor([s.trajectory.logprobs for s in job.samples]) + torch.linspace(-0.6, 0.6, 6)
    columns = [torch.tensor([getattr(s, name) for s in job.samples]) for name in ("advantage", "weight", "clip_high")]
    behaviour = torch.tensor([s.trajectory.logprobs for s in job.samples])
    rows = MinibatchRows(moved, behaviour, torch.tensor([s.trajectory.mask for s in job.samples]), *columns)
    return objectives()[recipe.objective].loss(rows, recipe)


async def test_the_solve_rate_of_the_log_reaches_the_loss() -> None:
    """One task each below, between and above the corners of s(p); the rates come from receipts, and nowhere else."""
    recipe, rates = {"clip_bonus": 0.3, "replay_steps": 0}, (0.25, 0.5, 0.85)
    ours, plain = (await made(recipe, rates))[0], (await made(recipe | {"objective": "grpo"}, rates))[0]
    assert [s.trajectory for s in ours.samples] == [s.trajectory for s in plain.samples]
    expected = [
        replace(
            sample,
            advantage=sample.advantage * ambiguity_scale(rates[n // SIZE]),
            clip_high=clip_high(rates[n // SIZE], RecipeConfig(clip_bonus=0.3)),
        )
        for n, sample in enumerate(plain.samples)
    ]
    assert list(ours.samples) == expected
    assert list(ours.samples[2 * SIZE :]) == list(plain.samples[2 * SIZE :])  # solved often: GRPO itself
    by_hand = loss_of(replace(plain, samples=tuple(expected)))
    assert float(loss_of(ours).loss) == float(by_hand.loss) != float(loss_of(plain).loss)
    wide = replace(
        plain, samples=tuple(replace(s, advantage=e.advantage) for s, e in zip(plain.samples, expected, strict=True))
    )
    assert float(loss_of(wide).loss) != float(by_hand.loss)  # the clip alone changes it


async def test_a_manifest_names_both_halves_of_a_pair() -> None:
    job, events, artifacts = await made({"objective": "dpo"})
    selected = events[0]
    assert isinstance(selected, DatasetSelected)
    told = json.loads(artifacts.get(selected.manifest))
    assert len(job.samples) == 1 + 2 + 1 and all(sample.over for sample in job.samples)
    assert len(told["over"]) == 4 and told["events"][-4:] == told["over"] and told["replayed"] == len(job.replay) > 0
    assert selected.events == len(told["events"]) == 8 + told["replayed"]


async def test_examples_are_named_by_event_and_text_and_are_enough() -> None:
    say = TrainingExample((Turn(role="user", content="1+1?"), Turn(role="assistant", content="2")), 0.5, event="e-77")
    other = replace(say, turns=(*say.turns[:1], Turn(role="assistant", content="3")))
    job, events, artifacts = await made({}, rates=(1.0,), examples=[say])
    selected, trained = events
    assert isinstance(selected, DatasetSelected) and isinstance(trained, CheckpointTrained)
    told = json.loads(artifacts.get(selected.manifest))
    assert told["examples"] == [["e-77", example_sha(say), 0.5]] and example_sha(say) != example_sha(other)
    assert job.examples == (say,) and job.samples == () and trained.adapter is not None
    again = await made({}, rates=(1.0,), examples=[other])
    assert isinstance(again[1][0], DatasetSelected) and again[1][0].dataset != selected.dataset


async def test_levels_and_tools_of_an_attempt_are_found() -> None:
    """Replay by pattern has something to go by."""
    by_pattern = {"replay_by": "pattern", "replay_steps": 1, "minibatch": 3, "replay_per_task": 3}
    counted = [0, 0, 0]
    job, _, _ = await made(by_pattern, rates=(0.25, 0.5, 0.75))
    for sample in job.replay:
        counted[(sample.trajectory.token_ids[2] - 3) // 10] += 1
    assert sum(counted) == 3 and max(counted) <= 2


@pytest.mark.parametrize(("skipped", "loud"), [(0, False), (1, False), (2, True), (10, True)])
@pytest.mark.parametrize("policy", ["skip", "fail"])
async def test_too_many_steps_without_a_number_raise_an_alarm_or_fail(skipped: int, loud: bool, policy: str) -> None:
    metrics = {"steps": 9.0, "skipped": float(skipped)}
    if loud and policy == "fail":
        with pytest.raises(OperationError, match="finite loss"):
            await made({"on_nan": policy}, metrics=metrics)
        return
    _, events, _ = await made({"on_nan": policy}, metrics=metrics)
    trained = events[1]
    assert isinstance(trained, CheckpointTrained) and trained.metrics["skipped"] == skipped
    raised = await raise_alarm(trained, RunState("r", 0, RunConfig(), ""))
    assert [one.alarm for one in raised] == (["not-finite-student-0"] if loud else [])  # type: ignore[attr-defined]
