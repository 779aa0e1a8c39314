"""kill -9 in the middle of an experiment, and artifacts that are gone: what is begun ends as if nothing had been, it
counts from its closing event, and is not begun at all where it could not end."""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent0.assembly.log.export import export
from agent0.assembly.log.restore import bring
from agent0.assembly.replay import stored_experiments
from agent0.assembly.replay.compare_runs import gather
from agent0.assembly.replay.rescore import Rescore, rescore_run
from agent0.assembly.replay.retrain import Retrain, retrain
from agent0.errors import NotFoundError, OperationError
from agent0.events.alarms import AlarmRaised
from agent0.events.base import Event, Recorded
from agent0.events.checkpoints import CheckpointTrained, TrainingRequested
from agent0.events.experiments import PREFIX, DatasetSelected, ExperimentFinished
from agent0.events.tasks import TaskAttempted
from agent0.events.values import Artifact, TrainingStep
from agent0.infra.models.scripted import ScriptedTrainer
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.ports.training import TrainingResult, TrainJob
from agent0.report.score_answers import retrain_answer
from agent0.settings import RewardConfig, Settings
from tests.pasts import events_of, keep, settings_at, tell
from tests.terminal import agent0 as call

PART = 8
BOLDER = Retrain("bold", "bolder", evaluate=False)
SEED = random.SystemRandom().randrange(10**6)
"""Said where a test fails: whatever it is, all of this is true."""

KILLED = f"""
import os, signal, sys
from agent0.assembly.replay import stored_experiments
from agent0.infra.log.connection import Link

stored_experiments.PART = {PART}
moment, stored = int(sys.argv.pop(1)), sys.argv.pop(1) == "stored"
request, count = Link.request, 0

async def dying(link, subject, *rest, **named):
    global count
    count += subject.startswith("a0.ev.exp-")
    if count < moment:
        return await request(link, subject, *rest, **named)
    if stored:
        await request(link, subject, *rest, **named)
    await link.client.flush()
    os.kill(os.getpid(), signal.SIGKILL)

Link.request = dying
from agent0.cli import main
main()
"""
"""Runs a command that dies when its part number ``moment`` is all but stored, or stored."""


def killed(home: Path, moment: int, stored: bool, *command: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", KILLED, str(moment), "stored" if stored else "sent", *command],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "AGENT0_HOME": str(home)},
        capture_output=True,
    )
    assert told.returncode == -signal.SIGKILL, (SEED, told.stdout.decode(), told.stderr.decode())


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the run; nobody changes it."""
    folder = tmp_path_factory.mktemp("kept")
    keep(folder, tell()[0], tell()[1])
    return folder


def copied(kept: Path, to: Path) -> Path:
    return Path(shutil.copytree(kept, to, symlinks=True))


def facts(held: Settings) -> list[tuple[str, str, str, Event]]:
    """What experiments said, in order."""
    return [(r.run, r.id, r.cause, r.event) for r in events_of(held, "") if r.run.startswith(PREFIX)]


def made(told: list[Recorded]) -> list[tuple[str, Artifact | None, str]]:
    """Each student's adapter, and the digest of what it was trained on."""
    data = {r.event.checkpoint: r.event.dataset for r in told if isinstance(r.event, DatasetSelected)}
    trained = [r.event for r in told if isinstance(r.event, CheckpointTrained) and r.event.role == "student"]
    return [(one.checkpoint, one.adapter, data.get(one.checkpoint, "")) for one in trained]


@pytest.mark.slow  # part of make crash
def test_a_killed_experiment_ends_as_one_that_was_left_alone(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_experiments, "PART", PART)
    draw = random.Random(SEED)
    rules = tmp_path / "rules.toml"
    rules.write_text("[weights]\nnovelty = 0.4\n")
    rescore = ("experiment", "rescore", "r1", "--rewards", str(rules), "--name", "bold", "--commit")
    train = ("experiment", "retrain", "bold", "--name", "bolder", "--no-evaluate")
    alone, other = (settings_at(copied(kept, tmp_path / name)) for name in ("alone", "other"))
    paying = Rescore("r1", "bold", RewardConfig(weights={"novelty": 0.4}), commit=True)
    paid, trained = (asyncio.run(work) for work in (rescore_run(alone, paying), retrain(alone, BOLDER)))
    wanted = facts(alone)
    parts = -(-sum(run == "exp-bold" for run, *_ in wanted) // PART)
    early = draw.randrange(1, parts // 2)
    killed(other.home, early, True, *rescore)
    killed(other.home, draw.randrange(1, parts - early), draw.random() < 0.5, *rescore)
    unfinished(other)
    assert asyncio.run(rescore_run(other, paying)) == paid, SEED
    killed(other.home, draw.randrange(2, 4), draw.random() < 0.5, *train)
    told = [event for run, _, _, event in facts(other) if run == "exp-bolder"]
    assert told and not any(isinstance(event, ExperimentFinished) for event in told), SEED
    assert asyncio.run(retrain(other, BOLDER)) == trained, SEED
    assert facts(other) == wanted, SEED


def unfinished(held: Settings) -> None:
    """Something is told, and nobody reads it."""
    assert call("experiment", "show", "bold", "--json", home=held.home).json["status"] == "unfinished"
    with pytest.raises(OperationError, match="unfinished"):
        asyncio.run(gather(held, ["r1", "bold"]))
    with pytest.raises(OperationError, match="unfinished"):
        asyncio.run(retrain(held, BOLDER))


def test_an_imported_past_is_trained_on_as_where_it_was_made(kept: Path, tmp_path: Path) -> None:
    old, new = settings_at(kept), settings_at(tmp_path / "new")
    asyncio.run(export(old, tmp_path / "log"))
    asyncio.run(bring(new, tmp_path / "log"))
    found = asyncio.run(retrain(new, Retrain("r1", "same", evaluate=False)))
    assert found["sameness"] == "The adapters are the very same as the run's own."
    live = made(tell()[0])
    assert any(adapter for _, adapter, _ in live)
    assert made(events_of(new, "exp-same")) == live


def test_a_broken_training_raises_its_alarms_there_too(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once each, however often the command is given; they are in the answer."""
    held, train = settings_at(copied(kept, tmp_path / "home")), ScriptedTrainer.train

    async def broken(self: ScriptedTrainer, job: TrainJob) -> TrainingResult:
        step = TrainingStep(kind="policy", loss=None, gradient_norm=None, learning_rate=5.0, tokens=9, skipped=True)
        result = await train(self, job)
        return replace(result, steps=(step,) * 3, metrics=result.metrics | {"skipped": 3.0})

    monkeypatch.setattr(ScriptedTrainer, "train", broken)
    results = asyncio.run(retrain(held, Retrain("r1", "hot", evaluate=False)))
    assert asyncio.run(retrain(held, Retrain("r1", "hot", evaluate=False))) == results
    learned = [checkpoint["checkpoint"] for checkpoint in results["checkpoints"] if checkpoint["adapter"]]
    alarms = [r.event for r in events_of(held, "exp-hot") if isinstance(r.event, AlarmRaised)]
    wanted = {f"{kind}-{checkpoint}" for checkpoint in learned for kind in ("rate", "not-finite")}
    assert learned and {alarm.alarm for alarm in alarms if "no-signal" not in alarm.alarm} == wanted
    assert results["alarms"] == [alarm.message for alarm in alarms]
    answer = retrain_answer({**results, "held_out": None})
    assert [f"Warning: {message}" for message in results["alarms"]] == answer[1:-1]


def claimed(store: FileArtifacts) -> tuple[list[Recorded], TaskAttempted, Artifact]:
    """The run with one of its trajectories as an artifact; the attempt, and what it names."""
    chosen = random.Random(SEED).choice(
        [r for r in tell()[0] if isinstance(r.event, TaskAttempted) and r.event.trajectory]
    )
    event = chosen.event
    assert isinstance(event, TaskAttempted) and event.trajectory
    kept = store.put(event.trajectory.model_dump_json().encode(), "application/json")
    claim = event.model_copy(update={"trajectory": None, "trajectory_artifact": kept})
    return [r.model_copy(update={"event": claim}) if r.id == chosen.id else r for r in tell()[0]], claim, kept


def test_nothing_is_begun_whose_trajectories_are_gone(tmp_path: Path) -> None:
    store = FileArtifacts(tmp_path)
    told, claim, lost = claimed(store)
    held, again = keep(tmp_path, told, tell()[1]), Retrain("r1", "again", evaluate=False)
    content = store.path(lost).read_bytes()
    for harm, word in ((Path.unlink, "missing"), (lambda path: path.write_bytes(b"junk"), "damaged")):
        harm(store.path(lost))
        with pytest.raises(NotFoundError, match=f"{lost.sha256} is {word}; it is the trajectory of {claim.attempt}"):
            asyncio.run(retrain(held, again))
        assert events_of(held, "exp-again") == [], SEED
    asyncio.run(retrain(held, Retrain("r1", "without", purged=(claim.task,), evaluate=False)))
    store.path(lost).write_bytes(content)
    asyncio.run(retrain(held, again))
    assert made(events_of(held, "exp-again")) == made(tell()[0]) != made(events_of(held, "exp-without"))


def test_nothing_is_begun_whose_first_parent_is_gone(tmp_path: Path) -> None:
    first = next(r for r in tell()[0] if isinstance(r.event, TrainingRequested) and r.event.role == "student")
    gone = Artifact(sha256="0" * 64, size=1)
    elder = first.event.model_copy(update={"parent": "elder", "parent_adapter": gone})
    held = keep(tmp_path, [r.model_copy(update={"event": elder}) if r is first else r for r in tell()[0]], tell()[1])
    with pytest.raises(NotFoundError, match=f"{gone.sha256} is missing; it is the adapter of elder"):
        asyncio.run(retrain(held, Retrain("r1", "again", evaluate=False)))
    assert events_of(held, "exp-again") == []
