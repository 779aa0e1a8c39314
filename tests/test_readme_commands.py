"""The commands of README.md, as they stand there, one after the other in one folder in which a run has been before."""

import json
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
REFUSED = {("model", "export"): "hold no weights"}
"""What a scripted run cannot do, and what it says of it."""
ROW = {"id": "g1", "question": "Tom has 3 apples and buys 4. How many has he?", "answer": "3+4=7\n#### 7"}
PROGRAM = {
    "id": "11",
    "prompt": "Write f that doubles.",
    "code": "def f(x): return 2*x",
    "test_list": ["assert f(2)==4"],
}


def commands() -> list[list[str]]:
    """Words of every line of README that begins with the program, in its order and once; those with a file of the
    user's are run by ``test_own_reward_page``."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "README.md").read_text())
    lines = re.findall(r"^(?:\.venv/bin/)?agent0 (.*)", text, re.MULTILINE)
    words = [shlex.split(line, comments=True) for line in lines if "my_reward.py" not in line]
    return [words[n] for n in range(len(words)) if words[n] not in words[:n]]


def test_readmes_commands_run_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENT0_PROFILE", "scripted")
    rows = tmp_path / "rows"
    rows.mkdir()
    (rows / "gsm8k_test.jsonl").write_text(json.dumps(ROW) + "\n")
    (rows / "mbpp_sanitized.jsonl").write_text(json.dumps(PROGRAM) + "\n")
    places = {"FOLDER": str(rows), "RUN/CHECKPOINT": "LAST/student-1"}
    listed = commands()
    assert len(listed) > 8 and listed[0] == ["doctor"]
    with attached(tmp_path / "home") as home:
        assert call(*BEFORE, home=home).code == 0
        for words in listed:
            said = call(*(places.get(word, word) for word in words), home=home)
            if (refusal := REFUSED.get((*words[:2],))) and said.code == 1:
                assert refusal in said.err
            else:
                assert said.code == 0, (words, said.err, said.out[-500:])
