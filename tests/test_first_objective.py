"""What only some trainings of a run have: the objective of those that begin with the base, and the optimizer's state of
the parent, which requests name."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_check import verify
from agent0.assembly.models.registry import prune
from agent0.assembly.validate.run_config import check_names
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.events.base import record, sha256
from agent0.events.checkpoints import CheckpointPromoted, CheckpointTrained, TrainingRequested
from agent0.events.runs import RunCancelled, RunStarted
from agent0.events.values import Artifact
from agent0.infra.models.scripted import ScriptedTrainer
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.ports.storage import Artifacts
from agent0.ports.training import TrainingResult, TrainJob
from tests.play import finished, play
from tests.test_making import ASKED, made
from tests.world import Opened, ports, small, started


@pytest.mark.parametrize("first", ["", "sft", "awr"])
async def test_a_training_from_the_base_has_the_first_objective_and_later_ones_the_recipes(first: str) -> None:
    recipe = {"objective": "grpo", "first": first}
    job, events, _ = await made(recipe)
    trained = next(event for event in events if isinstance(event, CheckpointTrained))
    assert job.settings["objective"] == trained.recipe["objective"] == (first or "grpo")
    plain = (await made({"objective": first or "grpo"}))[0]
    assert job.samples == plain.samples and job.settings["clip_high"] == plain.settings["clip_high"]
    later = ASKED.model_copy(update={"parent_adapter": Artifact(sha256="a" * 64, size=1)})
    assert (await made(recipe, request=later))[0].settings["objective"] == "grpo"


def test_a_first_objective_must_be_one_that_the_role_can_use() -> None:
    check_names(small(training={"student": {"objective": "grpo", "first": "sft"}}))
    for role, name in (("student", "sftt"), ("teacher", "sft")):
        with pytest.raises(ConfigError, match=f"run.training.{role}.first"):
            check_names(small(training={role: {"objective": "grpo", "first": name}}))


@dataclass
class Remembering:
    """A scripted trainer whose optimizer remembers something of each adapter."""

    artifacts: Artifacts
    jobs: list[TrainJob] = field(default_factory=list)

    async def train(self, job: TrainJob) -> TrainingResult:
        self.jobs.append(job)
        result = await ScriptedTrainer(self.artifacts).train(job)
        return replace(result, optimizer=self.artifacts.put(f"of {result.adapter.sha256}".encode()))


@pytest.mark.parametrize("setting", ["anew", "continued"])
def test_a_request_names_the_state_of_its_parent_and_of_nobody_else(setting: str) -> None:
    recipe = {"minibatch": 4, "replay_steps": 2, "optimizer_state": setting}
    config = small(iterations=5, tasks=8, seed=4, training={"student": recipe, "teacher": recipe})
    world = ports()
    trainer = Remembering(world["artifacts"])
    told = [r.event for r in finished(play(started(config), world | {"trainers": Opened(trainer)}))]
    requests = [event for event in told if isinstance(event, TrainingRequested)]
    promoted = sum(isinstance(event, CheckpointPromoted) for event in told)
    assert promoted > 0 and {request.role for request in requests} == {"student", "teacher"}
    for request in requests:
        expected: Any = None
        if request.parent_adapter and setting == "continued":
            expected = sha256(f"of {request.parent_adapter.sha256}")
        assert (request.parent_optimizer.sha256 if request.parent_optimizer else None) == expected
    assert any(request.parent_optimizer for request in requests) is (setting == "continued")
    assert all(job.optimizer in [request.parent_optimizer for request in requests] for job in trainer.jobs)


async def test_what_the_optimizer_remembered_goes_with_the_adapter_that_is_pruned(tmp_path: Path) -> None:
    settings, store = load("scripted", {"home": str(tmp_path)}, {}), FileArtifacts(tmp_path)
    adapter, state, other = (store.put(text) for text in (b"adapter", b"state", b"of another run"))
    trained = CheckpointTrained(
        checkpoint="student-0", role="student", iteration=0, parent="base", adapter=adapter, samples=1, optimizer=state
    )
    plain, digest = settings.run.to_record()
    begun = RunStarted(name="r", profile="scripted", seed=0, config=plain, config_sha=digest)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    async with open_log(settings, make=True) as log:
        await log.append([record(event, run="r", time=now) for event in (begun, trained, RunCancelled(reason=""))])
    done = await prune(settings, "r", "", commit=True)
    assert done["bytes"] == adapter.size + state.size
    assert [artifact.sha256 for artifact, _ in store.stored()] == [other.sha256]
    checked = await verify(settings)
    assert (checked["state"], checked["pruned"]) == ("whole", 2)
