"""Failed repairs of a run as tasks of a higher order: another failure, accepted by the same checks, none twice."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.mining.failed_repairs import add_failures
from agent0.assembly.mining.generate import LevelCount
from agent0.assembly.mining.judging import judge, read_mined
from agent0.assembly.mining.mined_folder import SOLUTIONS, TASKS, MinedFolder
from agent0.assembly.runtime.stamping import recorded
from agent0.assembly.validate.questions import located
from agent0.config.loading import load as settings_of
from agent0.errors import NotFoundError, OperationError
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.events.base import Event
from agent0.events.tasks import ResultVerified, TaskAttempted, TaskProposed
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.storage.datasets import LocalQuestions
from agent0.settings import QuestionsConfig, Settings
from agent0.tasks.mining.mutations import mutated, mutations_of
from agent0.tasks.mining.statements import shown_calls
from agent0.tools.snapshots import as_answer, load, save
from agent0.verification.repositories.mined_task import MinedSolution, MinedTask
from tests import mined
from tests.terminal import agent0
from tests.world import small, started

Files = Mapping[str, bytes]
RUN = "r1"
MODULE = "sums/__init__.py"
FURTHER = mined.CODE.replace("return result + start", "return result")
"""The bug is mended, and another function broken."""


async def write_run(settings: Settings, folder: Path, left: Sequence[Files]) -> None:
    """Write the log of a run whose attempts at the task of ``folder`` left these files, changed in its work folder."""
    config = small(questions=located(QuestionsConfig(file=str(folder))).model_dump())
    (entry,) = questions(LocalQuestions(), config.questions).rows.tasks
    assert entry.row.repository
    tree, artifacts = load(entry.row.repository.tree, FileArtifacts(folder)), artifact_store(settings)
    events: list[Event] = [started(config).event]
    request = {"task": "t0-000", "iteration": 0, "slot": 0, "teacher": "base", "seed": 0}
    events.append(TaskProposed(**request, text="", proposal=entry.task, prompt=""))
    for number, files in enumerate(left):
        common = {"task": "t0-000", "attempt": f"t0-000-a{number}", "iteration": 0}
        answer = as_answer(save({**tree, **files}, artifacts))
        numbers = {"turns": 1, "tool_calls": 1, "tool_ok": 1, "prompt": ""}
        events.append(TaskAttempted(**common, number=number, student="base", answer=answer, end="answered", **numbers))
        events.append(ResultVerified(**common, correct=False, verifier="hidden_tests", reason="tests fail"))
    async with open_log(settings, make=True) as log:
        await log.append([recorded(RUN, event) for event in events])


async def added(settings: Settings, out: Path) -> LevelCount:
    with MinedFolder.opened(out) as folder:
        return await add_failures(settings, RUN, folder, lambda _: None)


async def test_another_failure_is_a_task_once_and_what_fails_as_before_is_none(
    tmp_path: Path, shared_sandbox: None
) -> None:
    settings, out = settings_of("scripted", {"home": str(tmp_path / "home")}, {}), tmp_path / "out"
    bug = mined.CODE.replace(mined.RIGHT, mined.WRONG)
    texts = [FURTHER, FURTHER, f"{bug}\n\n# Looked at.\n", "def total(", f"{bug}\n\nNUMBER = 0\n"]
    folder = mined.mined_folder(tmp_path / "tasks", ["sums"])
    await write_run(settings, folder, [{MODULE: text.encode(), "notes.py": b"x"} for text in texts])
    count = await added(settings, out)
    assert (count.drawn, count.accepted) == (5, 1)
    assert count.why == {"a duplicate": 1, "it fails as before": 1, "most tests fail": 1, "its code is not changed": 1}
    with MinedFolder.opened(out) as opened:
        lines, (name,) = len(opened.lines), [line.task for line in opened.lines if line.task]
    task, solution = read_mined(out, TASKS, name, MinedTask), read_mined(out, SOLUTIONS, name, MinedSolution)
    assert (solution.order, solution.parent) == (2, "sums-0") and f"{RUN}/t0-000-a0 left" in solution.change
    assert solution.fail_to_pass == ("tests/test_total.py::test_total",)
    assert solution.pass_to_pass == ("tests/test_hidden.py::test_two",)
    assert "tests/test_total.py::test_total: assert 3 == 6" in task.statement
    tree = load(task.tree, FileArtifacts(out))
    assert tree[MODULE].decode() == FURTHER and not any(path.startswith("tests/") for path in tree)
    for files, right in ((load(solution.code, FileArtifacts(out)), True), (tree, False)):
        work = tmp_path / f"work-{right}"
        (work / "sums").mkdir(parents=True)
        (work / MODULE).write_bytes(files[MODULE])
        assert (await judge(out, name, work, settings.sandbox))[0] is right
    assert (await added(settings, out)).drawn == 5
    with MinedFolder.opened(out) as opened:
        assert len(opened.lines) == lines, "the same command tries nothing again"
    with pytest.raises(OperationError, match="the folder of the run's own tasks"):
        await added(settings, folder)


def test_failures_of_generated_repositories_show_other_calls(tmp_path: Path, shared_sandbox: None) -> None:
    settings = settings_of("scripted", {"home": str(tmp_path / "home")}, {})
    out, folder = tmp_path / "out", tmp_path / "tasks"
    made = agent0("task", "generate", "--out", str(folder), "--count", "1", "--level", "1", home=tmp_path / "home")
    assert made.code == 0, made.err
    (path,) = (folder / SOLUTIONS).glob("*.json")
    solution = MinedSolution.model_validate_json(path.read_text())
    code = load(solution.code, FileArtifacts(folder))
    module = next(path for path in code if path.endswith("series.py"))
    changes = [each for each in mutations_of(module, code[module]) if f"in {each.function}," not in solution.change]
    left = [{**code, module: mutated(code[module], [change])} for change in changes[::5][:3]]
    asyncio.run(write_run(settings, folder, left))
    count = asyncio.run(added(settings, out))
    assert count.drawn == 3 and count.accepted, count.why
    task = next(MinedTask.model_validate_json(path.read_text()) for path in (out / TASKS).glob("*.json"))
    further = read_mined(out, SOLUTIONS, task.id, MinedSolution)
    assert set(further.fail_to_pass).isdisjoint(solution.fail_to_pass) and task.level == 1 and further.order == 2
    assert {f"{call.module}: {call.expression}" for call in shown_calls(task.statement)} < set(further.fail_to_pass)


async def test_a_run_without_failed_repairs_is_named_in_a_line(tmp_path: Path) -> None:
    settings = settings_of("scripted", {"home": str(tmp_path / "home")}, {})
    await write_run(settings, mined.mined_folder(tmp_path / "tasks", ["sums"]), [])
    with pytest.raises(NotFoundError, match="has no failed repairs"):
        await added(settings, tmp_path / "out")
