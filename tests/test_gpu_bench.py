"""The measurement of a GPU works where there is none: a rehearsal on the CPU, which never touches the page."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gpu, measured_page
from benchmarks.gpu import Cost


def test_numbers_go_between_the_marks_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "gpu.md"
    page.write_text((measured_page.RESULTS / "gpu.md").read_text())
    monkeypatch.setattr(measured_page, "RESULTS", tmp_path)
    told = gpu.table({"agent0": Cost(1000, 2.0, 1.5, 4.0, 3.25)})
    for _ in range(2):
        measured_page.write("gpu.md", f"{told}\n")
    assert "| agent0 | training step | 250 | 4.00 | 3.25 |" in page.read_text()
    assert page.read_text().count(measured_page.BEGIN) == page.read_text().count("rollouts | 500") == 1
    assert page.read_text().startswith("# GPU\n") and "make bench-gpu" in page.read_text()


@pytest.mark.slow
def test_a_rehearsal_runs_both_parts() -> None:
    call = [sys.executable, "-m", "benchmarks.gpu", "--rehearse"]
    said = subprocess.run(call, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert "| agent0 | rollouts |" in said.stdout and "| agent0 | training step |" in said.stdout
    refused = subprocess.run([*call, "--write"], capture_output=True, text=True, check=False)
    assert refused.returncode and "no measurement" in refused.stderr
