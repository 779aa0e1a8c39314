"""The script for SLURM: a job that begins again goes on with its run, and one that must end stops everything first."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent0.infra.log.users.roles import ROLES
from tests.deploy_tools import ROOT
from tests.patience import until

SCRIPT = ROOT / "deploy" / "slurm" / "agent0.sbatch"
SLURM = {
    "srun": 'while [[ "$1" == --* ]]; do shift; done; exec "$@"',  # a step runs here, and signals reach it
    "scontrol": 'echo "$@" >>"$PLACE/requeued"',
}
STAND_IN = """
[ "$2" != run ] || trap 'echo "$@" >>"$PLACE/ended"; exit 143' TERM
echo "$@" >>"$PLACE/calls"
case "$1 $2" in
"run list") cat "$PLACE/runs" ;;
"run start") echo '[{"name": "slurm-7"}]' >"$PLACE/runs" ;;
"run watch") until [ -e "$PLACE/finished" ]; do sleep 0.05; done; exit "$(cat "$PLACE/finished")" ;;
"handlers run" | "projections run") while :; do sleep 0.05; done ;;
esac
"""
"""Of `agent0`: each call is noted; what stays does so until it is told to end."""


def environment(place: Path, **settings: str) -> dict[str, str]:
    (place / "bin").mkdir(parents=True, exist_ok=True)
    programs = {"agent0": STAND_IN, **SLURM}
    if settings.pop("REAL", ""):
        programs["agent0"] = f'exec {sys.executable} -m agent0 "$@"'
    for name, text in programs.items():
        (place / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
        (place / "bin" / name).chmod(0o755)
    (place / "runs").write_text("[]\n")
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    own = {
        "PATH": path,
        "PLACE": str(place),
        "SLURM_JOB_ID": "7",
        "AGENT0_HOME": str(place / "home"),
        "HOME": str(place),
    }
    return {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **own, **settings}


def begin(env: dict[str, str]) -> "subprocess.Popen[str]":
    with (Path(env["PLACE"]) / "told").open("a") as told:
        return subprocess.Popen(["bash", SCRIPT], env=env, stdout=told, stderr=told, text=True)


def lines(place: Path, name: str) -> list[str]:
    return (place / name).read_text().splitlines() if (place / name).exists() else []


async def test_a_job_that_begins_again_goes_on_with_its_run(tmp_path: Path) -> None:
    env = environment(tmp_path, A0_RUN="--profile 80gb --seed 1", A0_STUDENTS="2", A0_SLOTS="8")
    with begin(env) as job:
        await until(lambda: "run watch slurm-7" in lines(tmp_path, "calls"), "the run to be followed")
        await until(lambda: "\n".join(lines(tmp_path, "calls")).count("handlers run") == 5, "all steps")
        job.send_signal(signal.SIGTERM)
        assert job.wait(60) == 0
    assert lines(tmp_path, "requeued") == ["requeue 7"]
    calls = lines(tmp_path, "calls")
    assert "run start --profile 80gb --seed 1 --name slurm-7 --detach" in calls
    roles = [call.split() for call in calls if call.startswith("handlers run")]
    assert {words[at + 1] for words in roles for at, word in enumerate(words) if word == "--role"} == set(ROLES)
    assert sum("student" in words for words in roles) == 2
    assert sorted(lines(tmp_path, "ended")) == sorted([*map(" ".join, roles), "projections run"])

    (tmp_path / "finished").write_text("0")
    with begin(env) as job:
        assert job.wait(60) == 0
    assert sum(call.startswith("run start") for call in lines(tmp_path, "calls")) == 1
    assert lines(tmp_path, "requeued") == ["requeue 7"], "a run that is over needs no other job"


async def test_a_run_that_failed_is_a_job_that_failed(tmp_path: Path) -> None:
    env = environment(tmp_path)
    (tmp_path / "finished").write_text("4")
    with begin(env) as job:
        assert job.wait(60) == 4
    assert not lines(tmp_path, "requeued")


def test_without_a_data_folder_nothing_begins(tmp_path: Path) -> None:
    env = environment(tmp_path)
    del env["AGENT0_HOME"]
    with begin(env) as job:
        assert job.wait(60) != 0
    assert "AGENT0_HOME: is the data folder" in "\n".join(lines(tmp_path, "told")) and not lines(tmp_path, "calls")


@pytest.mark.slow
async def test_a_real_run_is_stopped_taken_up_and_finished(tmp_path: Path) -> None:
    sizes = "--profile tiny --iterations 1 --tasks 8 --attempts 4"
    env = environment(tmp_path, REAL="1", A0_RUN=sizes, A0_GPU="")
    told = tmp_path / "told"
    with begin(env) as job:
        await until(lambda: "tasks and attempts" in told.read_text(), "attempts")
        job.send_signal(signal.SIGTERM)
        assert job.wait(600) == 0
    with begin(env) as job:
        assert job.wait(900) == 0
    text = told.read_text()
    assert text.count(" finished: 1 iterations") == 1 and lines(tmp_path, "requeued") == ["requeue 7"]
