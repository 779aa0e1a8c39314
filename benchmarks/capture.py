"""Whether other frameworks take what the endpoint answers: graders of OpenEnv, readers of verifiers.

A run with the model ``tiny`` is served, and each library asks it as it asks a model server: a part of ``make traces``.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.trace_bench import AGENT0, HERE, Bench

RUN = (
    *("--profile", "scripted", "--set", "run.student.provider=tiny", "--set", "run.iterations=1"),
    *("--set", "run.tasks=1", "--set", "run.attempts=1", "--set", "run.evaluation.test=0"),
    *("--set", "run.evaluation.validation=1"),
)
GRADERS = {"openenv": "atif", "verifiers": "verifiers"}
"""Library -> the folder of its environment."""


@contextmanager
def served(bench: Bench) -> Iterator[str]:
    """Serve the data folder on a free port; yields the address."""
    env = {**os.environ, "AGENT0_HOME": str(bench.home)}
    server = subprocess.Popen([AGENT0, "view", "--port", "0"], env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip().removesuffix("/runs")
    finally:
        server.terminate()
        server.wait()


def graded(bench: Bench) -> Iterator[str]:
    """A row of the table for each thing that a library looked at."""
    run = json.loads(bench.agent0("run", "start", *RUN, "--json"))["run"]
    with served(bench) as address:
        for library, folder in GRADERS.items():
            python = bench.libraries / folder / "bin" / "python"
            command = [python, "-P", HERE / "capture_graders.py", library, address, f"{run}/base"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{library}: {done.stderr[-2000:]}")
            for row in map(json.loads, done.stdout.splitlines()):
                yield f"| {row['grader']} | {row['result']} |\n"
