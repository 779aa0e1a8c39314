"""Surroundings that a person's shell may bring: closed streams, odd folders, low limits. Real processes throughout."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent0.assembly.runtime import doctor
from agent0.assembly.validate import requirements
from tests.terminal import agent0 as call
from tests.test_cli_run import SMALL

ODD = """it's/a "quoted" {folder} $HOME 100% #1?"""


def shell(home: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run ``line``, in which $A is the command line, as a shell does."""
    environment = {**os.environ, "AGENT0_HOME": str(home), "A": f"{sys.executable} -m agent0"}
    done = subprocess.run(
        ["bash", "-c", line],
        env=environment,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert "defect of Agent0" not in done.stderr and "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def odd_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run in a folder whose name needs quoting wherever it is written."""
    home = tmp_path_factory.mktemp("odd") / ODD
    done = call("run", "start", *SMALL, "--iterations", "1", home=home)
    assert done.code == 0, done.err
    return home


def test_a_run_and_its_tables_in_a_folder_with_quotes(odd_home: Path) -> None:
    assert call("projections", "rebuild", "--verify", home=odd_home).code == 0
    assert call("run", "list", "--json", home=odd_home).json[0]["status"] == "finished"
    assert [path.name for path in odd_home.parent.iterdir()] == [odd_home.name]


def test_a_closed_stream_takes_nothing_and_ends_nothing(odd_home: Path) -> None:
    """The lowest free number goes to the file that is opened next: no table is written to as if it were a terminal."""
    table = odd_home / "tables" / "view.db"
    before = table.stat().st_size
    for command in ("run list --json >&-", "run list <&- 2>&-", "run show LAST <&- >&- 2>&-"):
        assert shell(odd_home, f"$A {command}").returncode == 0, command
    assert table.stat().st_size == before and call("projections", "rebuild", "--verify", home=odd_home).code == 0


def test_a_reader_that_has_seen_enough_ends_the_command_quietly(odd_home: Path) -> None:
    done = shell(odd_home, "$A events tail -n 100000 --json | head -1; echo ${PIPESTATUS[0]}")
    first, code = done.stdout.splitlines()
    assert (first.startswith("{"), code, done.stderr) == (True, "141", "")


@pytest.mark.slow  # part of make crash
@pytest.mark.parametrize("limit", [24, 64])
def test_few_open_files_are_enough_or_are_named(tmp_path: Path, limit: int) -> None:
    done = shell(tmp_path, f"ulimit -n {limit}; $A run start {' '.join(SMALL)} --iterations 1")
    if done.returncode:
        assert done.returncode == 5 and "ulimit -n" in done.stderr, done.stderr


def test_a_password_in_an_address_is_in_no_output(
    tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT0_NATS_URL", f"nats://canary-user:canary-word@127.0.0.1:{unused_tcp_port}")
    monkeypatch.setenv("AGENT0_MODELS__OLLAMA_URL", "http://u:canary-word@127.0.0.1:9")
    monkeypatch.setattr("agent0.infra.log.connection.CONNECT_S", 0.3)
    for looks in (doctor.LOOKS, requirements.REQUIREMENTS):  # the self-test is told no address
        monkeypatch.delitem(looks, "sandbox")
    lines = ("config show", "config show --json", "doctor --json", "log check", "log init", "run list")
    for line in (*lines, "run start -p scripted"):
        said = call(*line.split(), home=tmp_path)
        assert "canary" not in said.out + said.err, line
        assert str(unused_tcp_port) in said.out + said.err, line
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]
