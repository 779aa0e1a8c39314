"""The commands of README.md, as they stand there, one after the other in one folder in which a run has been before."""

import re
import shlex
from pathlib import Path

import pytest

from tests.kept_open import attached
from tests.terminal import agent0 as call

ROOT = Path(__file__).parents[1]
BEFORE = (
    *("run", "start", "--profile", "scripted", "--name", "make-run", "--iterations", "1", "--tasks", "3"),
    *("-s", "run.evaluation.validation=4", "-s", "run.evaluation.test=4"),
)
"""Stands for `make run`: another run is there already, so LAST must be the one that README started."""
SMALL = {
    "start": ("--iterations", "1", "--tasks", "6", "--set", "run.evaluation.test=8"),
    "ablation": (
        *("--jobs", "2", "--seeds", "0", "--set", "run.iterations=1", "--set", "run.tasks=3"),
        *("--set", "run.evaluation.validation=4", "--set", "run.evaluation.test=0"),
    ),
}
"""Verb -> what makes its runs short."""


def commands() -> list[list[str]]:
    """Words of every line of README that begins with the program, in its order and once; those with a file of the
    user's are run by ``test_own_reward_page``."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "README.md").read_text())
    lines = re.findall(r"^(?:\$ )?\.venv/bin/agent0 (.*)", text, re.MULTILINE)
    words = [shlex.split(line, comments=True) for line in lines if "my_reward.py" not in line]
    return [words[n] for n in range(len(words)) if words[n] not in words[:n]]


def test_readmes_commands_run_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENT0_PROFILE", "scripted")
    listed = commands()
    assert [words[:2] for words in listed] == [
        ["run", "start"], ["run", "why"], ["experiment", "rescore"], ["run", "fork"], ["experiment", "ablation"]
    ]  # fmt: skip
    with attached(tmp_path / "home") as home:
        assert call(*BEFORE, home=home).code == 0
        for words in listed:
            said = call(*words, *SMALL.get(words[1], ()), home=home)
            assert said.code == 0, (words, said.err, said.out[-500:])
