"""An adapter goes on with the base it was trained on; a run that names another is refused before anything is done."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent0.assembly.log.access import open_log
from agent0.config.loading import load
from agent0.events.base import Event, record
from agent0.events.checkpoints import CheckpointPromoted, CheckpointTrained, TrainingRequested
from agent0.events.runs import RunStarted
from agent0.events.values import Artifact, Role
from agent0.infra.models.transformers import BASE
from agent0.infra.weights.safetensors_io import digest
from tests.kept_open import attached
from tests.terminal import agent0

NOON = datetime(2026, 1, 1, tzinfo=UTC)
OTHER = "ab" * 32
"""Digest of a base that is not here."""
ASKED = TrainingRequested(
    checkpoint="student-5",
    role="student",
    iteration=0,
    parent="base",
    until=1,
    after=0,
    replay_after=0,
    seed=0,
    state_sha="",
)


def begun(profile: str) -> RunStarted:
    config, sha = load(profile, {}, {}).run.to_record()
    return RunStarted(name=profile, profile=profile, seed=0, config=config, config_sha=sha)


def gone_on_with(name: str, base: str, role: Role = "student") -> list[Event]:
    """A checkpoint trained on ``base`` ("": it does not say), and that it became the student."""
    held = Artifact(sha256=name[-1] * 64, size=9)
    told = {"role": role, "iteration": 0, "parent": "base", "samples": 1, "environment": {"base": base} if base else {}}
    trained = CheckpointTrained(checkpoint=name, adapter=held, **told)  # type: ignore[arg-type]
    return [
        trained,
        CheckpointPromoted(checkpoint=name, iteration=0, accuracy=0.5, reason="", by="person", adapter=held),
    ]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("fitting")
    told: dict[str, list[Event]] = {
        "own": [begun("tiny"), *gone_on_with("student-1", digest(BASE))],
        "bare": [begun("tiny"), gone_on_with("student-2", digest(BASE))[0]],
        "old": [begun("scripted"), *gone_on_with("student-3", "")],
        "bare-replaced": [begun("tiny"), ASKED, gone_on_with("student-5", OTHER)[0]],
        "replaced": [begun("tiny"), *gone_on_with("student-4", OTHER)],
    }

    async def tell() -> None:
        async with open_log(load("scripted", {"home": str(folder)}, {}), make=True) as log:
            await log.append([record(event, run=run, time=NOON) for run, events in told.items() for event in events])

    with attached(folder):
        asyncio.run(tell())
        yield folder


def fork(home: Path, run: str, *changes: str) -> tuple[int, str]:
    said = agent0("run", "fork", run, "--detach", *(f"--set={one}" for one in changes), home=home)
    return said.code, said.err


def test_a_fork_onto_another_base_is_refused_and_leaves_nothing(home: Path) -> None:
    before = len(agent0("run", "list", "--json", home=home).json)
    code, why = fork(home, "own", "student.model=climb")
    assert code == 2
    assert "student-1" in why and "climb" in why and digest(BASE)[:12] in why and "before the first promotion" in why
    assert fork(home, "own", "student.provider=scripted", "training.student.enabled=false")[0] == 2
    assert fork(home, "old", "student.provider=tiny")[0] == 2  # no digest is known: names decide
    assert len(agent0("run", "list", "--json", home=home).json) == before


def test_the_same_base_by_another_name_is_the_same_base(home: Path) -> None:
    for changes in (("student.model=tools",), ("student.provider=transformers", f"student.model={BASE}")):
        assert fork(home, "own", *changes) == (0, "")
    assert fork(home, "own", "teacher.model=climb") == (0, ""), "the teacher has no adapter yet"
    assert fork(home, "bare", "student.model=climb") == (0, ""), "nothing was promoted yet"
    assert fork(home, "old", "training.student.lr=0.5") == (0, "")


def test_a_run_whose_base_was_replaced_is_not_gone_on_with(home: Path) -> None:
    said = agent0("run", "resume", "replaced", "--set", "sandbox.workers=1", home=home)
    assert said.code == 2 and "trained on other weights" in said.err
    kinds = [one["type"] for one in agent0("events", "tail", "--run", "replaced", "--json", home=home).lines]
    assert sorted(kinds) == ["CheckpointPromoted", "CheckpointTrained", "RunStarted"]


def test_a_run_whose_base_was_replaced_is_not_trained_again_on_the_other(home: Path) -> None:
    """A first checkpoint goes on from the base itself: it has no adapter that would not fit."""
    said = agent0("experiment", "retrain", "bare-replaced", "--name", "again", home=home)
    assert said.code == 2, said.err
    assert OTHER[:12] in said.err and digest(BASE)[:12] in said.err and "student.model=FOLDER" in said.err
    kinds = [one["type"] for one in agent0("events", "tail", "--run", "bare-replaced", "--json", home=home).lines]
    assert sorted(kinds) == ["CheckpointTrained", "RunStarted", "TrainingRequested"]
