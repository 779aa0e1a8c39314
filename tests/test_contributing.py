"""The examples of CONTRIBUTING are whole: written into a copy of the tree, each is found, used and checked."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT
from tests.test_architecture import CHECKS, Source

EXAMPLES = dict(re.findall(r"```python\n# file: (\S+)\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S))
ROOMS = ("agent0", "events", "handlers", "infra", "projections", "tests")

USED = """
import asyncio
from agent0.tasks.families import families
from agent0.rewards import rewards
from agent0.rollout.student import specs_of
from agent0.tools.calling import call_tool
from agent0.tools.workspace import Workspace
from agent0.events import checkpoints, tasks
from agent0.events.values import ToolCall
from agent0.handlers import handlers
from tests.play import play
from agent0.infra.storage import sqlite
from pathlib import Path
from agent0.projections import Projector, tables
from tests.memory import TrustingSandbox
from tests.test_handlers import judging, react, scored
from tests.world import ports, small, started

# domain and family: a run asks for them, and its tasks are solved and judged
domains = {"embedder": "ngram", "domains": ["units", "math"]}
config = small(iterations=1, tasks=12, curriculum=domains, evaluation={"validation": 4})
told = asyncio.run(play(started(config), ports()))
accepted = [r.event.proposal for r in told if isinstance(r.event, tasks.TaskAccepted)]
assert {"durations"} == set(families("units"))
assert "units" in {task.domain for task in accepted}
judged = {r.task: r.event for r in told if isinstance(r.event, tasks.ResultVerified)}
assert any(v.correct for task, v in judged.items()), judged
evaluated = next(r.event for r in told if isinstance(r.event, checkpoints.CheckpointEvaluated))
assert set(evaluated.by_domain) == {"units", "math"}

# tool: the student is told of it and can call it
assert "weekday of a date" in specs_of(["weekday"])[0].description
call = ToolCall(name="weekday", arguments={"date": "2024-02-29"})
assert asyncio.run(call_tool(call, Workspace(TrustingSandbox(), ["weekday"]))).output == "Thursday"

# reward: every receipt of a student has it
receipts = [r.event for r in told if isinstance(r.event, tasks.RewardAssigned) and r.event.role == "student"]
assert receipts and all("brevity" in {part.name for part in one.parts} for one in receipts)

# handler: reacts beside the others
assert handlers()["note_record"].events == ("CheckpointPromoted",)
state = judging(0.5)
(verdict,) = asyncio.run(react("judge_checkpoint", scored(0.95), state))
(alarm,) = asyncio.run(react("note_record", verdict, state))
assert alarm.alarm == "record-student-0"

# projection: its table is filled from the same events
projector = Projector(Path("view.db"), sqlite.connect, tables(), "stream")
projector.apply([(r.seq, r.to_json()) for r in told])
projector.close()
with sqlite.reading(Path("view.db")) as db:
    rows = db.execute("SELECT sum(uses) FROM prompt_uses").fetchone()
assert rows[0] == sum(isinstance(r.event, tasks.TaskProposed | tasks.TaskAttempted) for r in told)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree with all examples in it, and what is compiled of it (not what is being written just now)."""
    root = tmp_path_factory.mktemp("copy")
    for room in ROOMS:
        shutil.copytree(
            ROOT / room, root / room, symlinks=True, ignore=shutil.ignore_patterns("*.pyc.*", "*.safetensors")
        )
    for file in ("pyproject.toml", "CONTRIBUTING.md", "docker-compose.yml"):
        shutil.copy(ROOT / file, root)
    for path, text in EXAMPLES.items():
        assert not (ROOT / path).exists(), f"{path} is there already"
        (root / path).write_text(text)
    return root


def run(root: Path, *arguments: str) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *arguments], cwd=root, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_there_is_an_example_of_everything() -> None:
    rooms = sorted(str(Path(path).parent) for path in EXAMPLES)
    copied = ["agent0/rewards/components", "agent0/tasks/families", "agent0/tools/builtin"]
    assert rooms == [*copied, "handlers", "projections"]


def test_every_row_names_at_most_three_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## Where things go")[2].partition("## One file each")[0]
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ") and not line.startswith("| to ")]
    assert len(rows) > 30
    for row in rows:
        named = re.findall(r"`([\w<>.]+/[\w<>./]*)`", row[1])
        assert len(named) <= 3 and (named or row[0].startswith(("| task family of", "| task family whose", "| domain")))
        for path in named:
            folder, is_pattern, _ = path.partition("<")
            assert (ROOT / folder).is_dir() if is_pattern else (ROOT / path).exists(), path


@pytest.mark.parametrize("path", EXAMPLES)
def test_examples_keep_the_rules_of_the_house(path: str) -> None:
    assert [told for check in CHECKS for told in check(Source(path, EXAMPLES[path]))] == []


def test_one_file_is_enough_to_be_used(copy: Path) -> None:
    run(copy, "-c", USED)


@pytest.mark.slow  # part of make crash
def test_additions_are_tested_without_a_line_of_their_own(copy: Path) -> None:
    """Contract tests run over the registries."""
    names = "durations or brevity or note_record or weekday"
    modules = ("test_families", "test_rewards", "test_handlers", "test_verifiers", "tools/test_conformance")
    wanted = [f"tests/{module}.py" for module in modules]
    run(copy, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-k", names, *wanted)
    run(copy, "-m", "ruff", "check", *EXAMPLES)
