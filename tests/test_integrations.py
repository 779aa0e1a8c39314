"""The frame of integrations/: ``make integrations`` runs the check of each folder and says what it left out."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def make(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """``make integrations`` of this checkout's Makefile, in ``place``."""
    command = ["make", "--no-print-directory", "-C", str(place), "-f", str(ROOT / "Makefile"), "-o", ".venv/.ready-dev"]
    return subprocess.run([*command, "integrations", *words], capture_output=True, text=True, timeout=60)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Integrations that pass, have no check, cannot be checked here, fail, and pass again."""
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".ready-dev").touch()
    checks = {"alpha": "pwd", "beta": "", "gamma": "echo no Node here >&2; exit 77", "omega": "exit 3", "zeta": "pwd"}
    for name, check in checks.items():
        (tmp_path / "integrations" / name).mkdir(parents=True)
        if check:
            (tmp_path / "integrations" / name / "check.sh").write_text(f"{check}\n")
    (tmp_path / "integrations" / "README.md").touch()
    return tmp_path


def test_each_check_runs_in_its_folder_and_what_is_left_out_is_told(place: Path) -> None:
    done = make(place, "INTEGRATIONS=alpha beta gamma zeta")
    assert done.returncode == 0, done.stderr
    inside = [str(place / "integrations" / name) for name in ("alpha", "zeta")]
    assert [line for line in done.stdout.splitlines() if line.startswith("/")] == inside
    assert "beta is left out: it has no check.sh" in done.stdout
    assert "no Node here" in done.stderr and "gamma is left out: its last line says why" in done.stdout


def test_the_first_failure_is_named_and_ends_it(place: Path) -> None:
    done = make(place)
    assert done.returncode == 2 and "integrations: omega failed (exit code 3)" in done.stderr
    assert "README" not in done.stdout + done.stderr and "zeta" not in done.stdout
    assert "there is no nobody" in make(place, "INTEGRATIONS=nobody").stderr
