"""The examples in help do what they say: each is carried out as it stands, in a folder with two finished runs."""

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent0.cli.examples import EXAMPLES
from tests.kept_open import attached
from tests.terminal import agent0 as call

SIZE = ("--profile", "scripted", "--tasks", "6", "--attempts", "3", "-s", "run.evaluation.test=4",
        "-s", "run.evaluation.validation=4")  # fmt: skip
ELSEWHERE = {
    "names of the user's own": (
        "mine.toml", "bench-", "exp-mine", "f-1a2b", "4711", "3f2a91c07be4", "run.tar", "pyproject.toml",
        "calibrator tiny",
        "mcp search", "t0-003-a0#", "--data rows", "bench report",
        "mine.jsonl", "results.jsonl", "train.jsonl", "rows.csv", "questions ledger", "restore monday.tar",
        "--rotate student", "submission-0a1b2c3d4e5f",
    ),
    "runs of minutes or hours": (
        "--profile climb", "experiment ablation", "experiment retrain",
        "router calibrate",
        "run start", "run fork", "tutorial",
        "events archive", "sandbox check", "doctor",
    ),
    "files of the network": ("model get", "model rm", "model train", "task mine", "task unpack", "task judge"),
    "folders with settings, whose tests are elsewhere": ("bench regression main",),
    "files of questions, whose tests are elsewhere": ("batch run", "prompt compare", "questions write"),
    "goes on until it is stopped": (
        "--follow", "handlers run", "metrics serve", "projections run", "run watch", "tool serve", "agent0 up",
        "agent0 view", "agent0 chat tiny", "agent0 chat qwen",
    ),
    "checkpoints with weights, which scripted runs have not": (
        "model ab", "model card", "model compare", "model ensemble", "model exam", "model export", "model lineage",
        "model promote", "model push", "model repeat", "model rejudge", "model rollback", "model show", "model verify",
        "router evaluate", "router compress", "experiment reroute", "projections rollback",
    ),
    "programs in the sandbox, whose tests are elsewhere": ("hack-test", "sandbox top", "sandbox test", "tool call",
        "bench controls", "env add", "env rm", "env serve", "task generate", "solve fix", "solve test",
        "solve review", "solve refactor", "solve document"),
    "a run that waits, or attempts that a person reviews": ("run cancel", "run pause", "run priority", "run resume",
        "task review", "log init", "run diff", "experiment compare"),
}  # fmt: skip
"""What is not carried out here, by why."""
HERE = [line for line in EXAMPLES if not any(part in line for parts in ELSEWHERE.values() for part in parts)]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What each copy is of."""
    with attached(tmp_path_factory.mktemp("examples")) as folder:
        for name in ("first", "second"):
            assert call("run", "start", *SIZE, "--name", name, home=folder).code == 0
    return folder


def copy_of(kept: Path, place: Path) -> Path:
    return Path(shutil.copytree(kept, place, ignore=shutil.ignore_patterns("*.sock")))


@pytest.fixture(scope="module")
def home(kept: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with attached(copy_of(kept, tmp_path_factory.mktemp("whole") / "home")) as folder:
        yield folder


@pytest.mark.parametrize("line", HERE)
def test_an_example_of_help_succeeds(
    kept: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """What takes runs away is carried out on a copy; models are those of the runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENT0_PROFILE", "scripted")
    if line.startswith(("agent0 run hide", "agent0 run delete", "agent0 run archive", "agent0 run prune")):
        home = copy_of(kept, tmp_path / "copy")
    done = call(*shlex.split(line)[1:], home=home)
    assert done.code == 0, done.err


def test_what_is_not_carried_out_is_an_example() -> None:
    left = [part for parts in ELSEWHERE.values() for part in parts if not any(part in line for line in EXAMPLES)]
    assert left == []
