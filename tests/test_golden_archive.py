"""An archive of four runs that 0.1.0 wrote is read back: the same rewards from the same events, and where the processor
is of the same kind the same adapters. ``python -m tests.test_golden_archive`` writes it anew, which says that logs of
before cannot be read any more."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kept_open import attached
from tests.terminal import agent0

ARCHIVE = Path(__file__).parent / "data" / "runs.tar"
SMALL = ("-s", "run.training.student.rank=2", "-s", "run.training.teacher.rank=2")
ITEMS = ("-s", "run.evaluation.validation=4", "-s", "run.evaluation.test=4")
RUNS = {
    "scripted": ("start", "--profile", "scripted", "--iterations", "1", "--tasks", "4", *ITEMS),
    "tiny": ("start", "--profile", "tiny", "--iterations", "2", "--tasks", "6", *SMALL, *ITEMS),
    "fork": ("fork", "tiny", "--at", "iteration:1", "-s", "training.student.lr=0.001"),
    "long": (
        *("start", "--profile", "long-tiny", "--iterations", "1", "--tasks", "8", "--attempts", "4", "--seed", "1"),
        *("-s", "run.student.temperature=1.4", *SMALL, *ITEMS),
    ),
}  # fmt: skip
"""Name -> the words that began it."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("golden")
    answer = agent0("events", "import", str(ARCHIVE), home=folder)
    assert answer.code == 0, answer.err
    with attached(folder):
        yield folder


def test_every_event_is_read_and_is_what_its_seals_say(home: Path) -> None:
    assert agent0("events", "verify", home=home).code == 0
    runs = agent0("projections", "query", "SELECT name, status FROM runs", "--json", home=home).json
    statuses = {row["name"]: row["status"] for row in runs}
    assert statuses == dict.fromkeys(RUNS, "finished")


@pytest.mark.parametrize("run", RUNS)
def test_the_same_events_give_the_same_rewards(home: Path, run: str) -> None:
    answer = agent0("experiment", "rescore", run, "--json", home=home)
    assert answer.code == 0, answer.err
    assert answer.json["receipts"] > 0 and answer.json["changed"] == 0


@pytest.mark.parametrize("run", ["fork", "long"])
def test_the_same_answers_give_the_same_adapters(home: Path, run: str) -> None:
    """Equal to the bit, unless they are computed elsewhere; a fork's first ones by the settings of what it is of (so
    ``fork`` trains the first of ``tiny`` again, too)."""
    answer = agent0("experiment", "retrain", run, "--name", f"again-{run}", "--no-evaluate", "--json", home=home)
    assert answer.code == 0, answer.err
    assert answer.json["adapters"]
    for row in answer.json["adapters"]:
        assert row["same_inputs"] and (row["same"] or row["environment"]), row


def write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "AGENT0_HOME": folder}
        for name, words in RUNS.items():
            subprocess.run([sys.executable, "-m", "agent0", "run", *words, "--name", name], env=environment, check=True)
        ARCHIVE.unlink(missing_ok=True)
        subprocess.run([sys.executable, "-m", "agent0", "events", "export", str(ARCHIVE)], env=environment, check=True)


if __name__ == "__main__":
    write()
