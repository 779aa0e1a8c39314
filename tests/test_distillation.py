"""What another model wrote is labelled, and learned only where a run says so; then the checkpoint says so, too."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.routing.billing import actors_of, check_routing
from agent0.assembly.runtime.model_ports import OpenModels
from agent0.config.loading import load
from agent0.errors import ConfigError, DependencyError
from agent0.events.base import Event, record
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.tasks import TaskAttempted
from agent0.events.values import Turn
from agent0.infra.gateway.gateway import Gateway, LocalLink
from agent0.infra.log.event_log import Log
from agent0.ports.models import GenerateRequest, Generation
from agent0.projections.checkpoints import checkpoints
from agent0.report.markdown.model_card import model_card
from agent0.rollout.attempt import AttemptProgress
from agent0.rollout.prompts import prompt
from agent0.rollout.student import Conditions, begin, conclude, step
from agent0.settings import PolicyConfig, RunConfig, StudentConfig
from agent0.training.pipeline import make_checkpoint
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.test_dataset import NOON, TASK, attempted, proposed, rewarded, verified
from tests.test_dataset import Past as DatasetPast
from tests.test_gateway import Vendor
from tests.test_making import ASKED, Bench

OTHER = "openai/gpt-4o"
SAID = (Turn(role="user", content="?"), Turn(role="assistant", content="\\boxed{1}"))


def written(name: str, *, by: Mapping[str, int], right: bool = True, **changes: Any) -> list[Event]:
    changes = {"student": "base", **changes}
    plain: dict[str, Any] = {"trajectory": None, "trajectory_problem": "another model wrote it", "transcript": SAID}
    told = attempted(name, **((plain | {"authors": dict(by)} if by else {}) | changes))
    return [told, verified(right, name), rewarded(1.0 if right else 0.0, name=name)]


async def trained(events: list[Event], **recipe: Any) -> tuple[CheckpointTrained, Bench]:
    plan = RunConfig.model_validate({"training": {"student": {"objective": "sft", **recipe}}})
    bench = Bench(MemoryArtifacts(), {"steps": 1.0})
    request = ASKED.model_copy(update={"iteration": 4})
    made = await make_checkpoint(request, "r", plan, bench, DatasetPast(events), bench.artifacts)
    [event] = [one for one in made if isinstance(one, CheckpointTrained)]
    return event, bench


PAST = [
    proposed(),
    *written("a", by={OTHER: 1}),
    *written("b", by={OTHER: 1}, right=False),
    *written("c", by={}, transcript=SAID),
]


async def test_answers_of_other_models_are_refused_unless_told_to_distil() -> None:
    event, bench = await trained(PAST)
    assert event.distilled == {} and event.skipped["another model wrote it"] == 2
    assert not any(job.examples for job in bench.jobs)


async def test_accepted_ones_are_learned_where_told_and_the_checkpoint_says_how_many() -> None:
    event, bench = await trained(PAST, distil=True)
    [example] = bench.jobs[-1].examples
    assert (example.turns, example.event) == (SAID, "e2")
    whole = event.samples + event.replay + 1
    assert event.distilled == {OTHER: pytest.approx(1 / whole, abs=1e-4)} and whole > 1


async def test_a_turn_counts_as_its_part() -> None:
    turns = (*SAID, Turn(role="user", content="?"), SAID[1])
    both = written("a", by={OTHER: 1, "anthropic/x": 1}, transcript=turns)
    event, _ = await trained([proposed(), *both], distil=True)
    assert event.distilled == {OTHER: 0.5, "anthropic/x": 0.5}


class Away:
    """A model that is away."""

    name = "tiny"

    async def generate(self, request: GenerateRequest) -> Generation:
        raise DependencyError("tiny")

    async def close(self) -> None:
        """Nothing is open."""


class Cloud(Away):
    name = OTHER

    async def generate(self, request: GenerateRequest) -> Generation:
        return Generation("\\boxed{1}", (1, 2), (-0.5, -0.1), (3,), model=self.name)


async def attempt(model: Any) -> AttemptProgress:
    plan = StudentConfig(tools=())
    conditions = Conditions(model, plan, TrustingSandbox(), MemoryArtifacts(), seed=1, policy=PolicyConfig())
    now = begin(TASK, prompt("compact", "math", "student"), plan)
    while now.end is None:
        now = AttemptProgress.model_validate_json((await step(now, conditions)).model_dump_json())
    return now


async def test_an_attempt_names_the_models_that_wrote_for_its_student() -> None:
    other = conclude(await attempt(Gateway([LocalLink(Away()), LocalLink(Cloud())], Vendor())))
    own = conclude(await attempt(Gateway([LocalLink(Cloud())], Vendor())))
    assert (other.authors, other.trajectory) == ({OTHER: 1}, None)
    assert own.authors == {} and own.trajectory is not None


def test_a_student_has_stand_ins_in_rollouts_and_nowhere_else(log: Log, tmp_path: Path) -> None:
    given = {"home": str(tmp_path), "run.student.distil_from": "ollama/big"}
    settings = load("scripted", given, {})
    student = settings.run.student
    models = OpenModels(settings, MemoryArtifacts(), log)
    assert isinstance(models.open(student.in_rollouts()), Gateway)
    assert not isinstance(models.open(student), Gateway)
    assert actors_of(settings)["student fallback 1"].model == "big"
    check_routing(settings)
    with pytest.raises(ConfigError):
        check_routing(load("scripted", given | {"run.student.distil_routing.strategy": "poetry"}, {}))


def test_an_old_attempt_is_its_students_own() -> None:
    held = record(attempted(), run="r", time=NOON, id="e").event.model_dump(exclude={"authors"})
    assert TaskAttempted.model_validate(held).authors == {}


def test_the_card_says_whose_answers_were_learned() -> None:
    made = CheckpointTrained(
        checkpoint="student-1",
        role="student",
        iteration=1,
        parent="base",
        adapter=None,
        samples=1,
        distilled={OTHER: 0.25},
    )
    [row] = checkpoints(record(made, run="r", time=NOON))
    empty = dict.fromkeys(("recipe", "skipped", "metrics", "environment"))
    run = {"config": {}, "seed": 1, "config_sha": "c" * 64}
    held = {**row, **empty, "distilled": json.loads(row["distilled"])}
    assert f"other models wrote 25 % {OTHER}" in model_card(held, run, [], {})
    assert "Distilled" not in model_card({**held, "distilled": None}, run, [], {})
