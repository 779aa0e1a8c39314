"""Runs whose tasks were mined: the student changes files over turns, hidden tests decide, packages are split."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.assembly.runtime import port_openers
from agent0.assembly.validate.questions import forked_questions, with_questions
from agent0.assembly.validate.run_config import check_names
from agent0.errors import ConfigError, DependencyError
from agent0.evaluation.benchmarks.rows.mined_rows import DOMAINS
from agent0.evaluation.benchmarks.rows.question_file import FOLDER_TOOLS, questions
from agent0.events.base import Recorded
from agent0.events.checkpoints import EvaluationItemScored
from agent0.events.runs import RunFinished, RunStarted
from agent0.events.tasks import ResultVerified, RewardAssigned, TaskAttempted, TaskProposed, ToolCalled, TurnCompleted
from agent0.events.values import REPAIR
from agent0.infra.models import scripted
from agent0.infra.storage.datasets import LocalQuestions
from agent0.rewards import receipt, set_of_domain
from agent0.rewards.sets.repair import MOST
from agent0.settings import RewardConfig, RunConfig
from agent0.tools.snapshots import answered_folder, as_answer, save
from agent0.verification.panel import VerificationContext
from agent0.verification.repositories.hidden_values import mended_share
from agent0.verification.verifiers import verifier_for
from tests.killed_runs import QUICK, facts, killed_before_a_verdict
from tests.memory import MemoryArtifacts
from tests.mined import mined_folder, package_of, random_edit, right_edit, writer
from tests.play import finished, play
from tests.terminal import agent0
from tests.world import ports, small, started

PACKAGES = ("adds", "counts", "folds", "sums")


def plan(folder: Path, **changes: Any) -> RunConfig:
    """A small run of the tasks in ``folder``, checked as a start checks it."""
    sizes = {"iterations": 1, "tasks": 2, "attempts": 1, "evaluation": {"validation": 1, "test": 0}}
    student = {"max_tokens": 600, **changes.pop("student", {})}
    config = with_questions(small(**{"questions": {"file": str(folder)}, "student": student} | sizes | changes))
    check_names(config)
    return config


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mined_folder(tmp_path_factory.mktemp("mined"), PACKAGES)


def of(told: Sequence[Recorded], kind: Any) -> list[Any]:
    return [recorded.event for recorded in told if isinstance(recorded.event, kind)]


def told_by(config: RunConfig, edit: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> list[Recorded]:
    """A whole run whose student makes ``edit``."""
    monkeypatch.setattr(scripted, "_say", writer(edit))
    sandbox = asyncio.run(port_openers.open_sandbox())
    return finished(play(started(config), {**ports(), "sandbox": sandbox, "verifier_sandbox": sandbox}))


def test_the_perfect_student_is_right_over_several_turns(
    folder: Path, shared_sandbox: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = plan(folder)
    assert config.student.tools == FOLDER_TOOLS
    told = told_by(config, right_edit, monkeypatch)
    verdicts = of(told, ResultVerified)
    assert [(event.verifier, event.correct, event.reason) for event in verdicts] == [
        ("hidden_tests", True, "all 2 hidden tests pass")
    ] * 2
    receipts = [event for event in of(told, RewardAssigned) if event.role == "student"]
    assert {event.set for event in receipts} == {"repair"} and len(receipts) == 2
    parts = {part.name: part for part in receipts[0].parts}
    assert [parts[name].value for name in ("correctness", "subgoals", "small_change")] == [1.0, 1.0, 1 - 1 / MOST]
    assert len(of(told, TurnCompleted)) == 4, "two turns are on the log before each attempt's last"
    tests = [event.result.output for event in of(told, ToolCalled) if event.call.name == "run_tests"]
    assert set(tests) == {"1 passed, 0 failed"}, "the hidden ones are not there"
    trained = {event.proposal.row.repository.package for event in of(told, TaskProposed)}
    scored = of(told, EvaluationItemScored)
    assert scored and all(event.correct for event in scored)
    assert {package_of(event.question) for event in scored}.isdisjoint(trained)
    assert all(event.end == "answered" and answered_folder(event.answer) for event in of(told, TaskAttempted))


@pytest.mark.parametrize(
    "edit, reason, credit",
    [
        (lambda _: "", "nothing was changed", None),
        (random_edit, "1 of 2 tests fail, such as tests/test_hidden.py::test_two", 0.0),
    ],
    ids=["empty", "random"],
)
def test_other_students_are_wrong(
    folder: Path,
    edit: Callable[[str], str],
    reason: str,
    credit: float | None,
    shared_sandbox: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = told_by(plan(folder, tasks=1), edit, monkeypatch)
    assert [(event.correct, event.reason) for event in of(told, ResultVerified)] == [(False, reason)]
    assert [event.credit for event in of(told, ResultVerified)] == [credit]
    assert [event.correct for event in of(told, EvaluationItemScored)] == [False]


async def test_an_answer_that_is_no_folder_is_wrong_and_one_without_files_undecided(folder: Path) -> None:
    task = questions(LocalQuestions(), plan(folder).questions).tasks["train"][0]
    judge, artifacts = verifier_for(task), MemoryArtifacts()
    tree = as_answer(task.row.repository.tree) if task.row and task.row.repository else ""
    hostile = [None, "", "done", f"{tree} ", "files ../../etc/passwd 1", f"files {'0' * 63} 1", tree]
    verdicts = await judge.judge(task, hostile, port_openers, VerificationContext(artifacts=artifacts))  # type: ignore[arg-type]
    assert [verdict.correct for verdict in verdicts] == [False] * len(hostile)
    assert [verdict.correct for verdict in await judge.judge(task, [tree], port_openers)] == [None]  # type: ignore[arg-type]
    assert as_answer(save({}, artifacts)) is None


def test_a_folder_is_rewarded_by_the_set_of_its_domain_unless_one_is_named(folder: Path, tmp_path: Path) -> None:
    assert {set_of_domain(domain) for domain in (*DOMAINS.values(), REPAIR)} == {
        *("agent0", "documenting", "refactoring", "repair", "reviewing", "testing")
    }
    config = plan(folder)
    assert config.rewards.set == "repair"
    own = config.model_copy(update={"rewards": RewardConfig()})
    assert with_questions(own, {"run.rewards.set"}).rewards.set == "agent0"
    assert forked_questions(own, own, {"training.student.lr"}).rewards.set == "agent0", "a fork stays what it was"
    assert plan(folder, rewards={"set": "paper"}).rewards.set == "paper"
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f'{{"question": "{n} plus {n + 1}", "answer": "{2 * n + 1}"}}\n' for n in range(60)))
    assert plan(rows).rewards.set == "agent0"


@given(st.sets(st.integers(0, 9), min_size=1), st.sets(st.integers(0, 20)))
def test_whatever_is_wrong_earns_less_than_what_is_right(failing: set[int], failed: set[int]) -> None:
    tests = [f"{number}" for number in failing], [f"{number}" for number in failed]
    credit = mended_share(*tests)
    assert credit is not None and 0 <= credit <= 1 and (credit == 1) == (not failed)
    assert mended_share(tests[0], [*tests[1], "99"]) <= credit, "what is broken costs"  # type: ignore[operator]
    assert mended_share([], tests[1]) is None
    for name in ("refactoring", "repair", "documenting"):
        wrong = receipt("student", {"correct": False, "credit": credit, "changed_lines": 0}, {}, name)[1]
        right = receipt("student", {"correct": True, "credit": 1.0, "changed_lines": 400}, {}, name)[1]
        assert wrong <= 0.3 < 1 <= right


def test_packages_are_split_as_a_whole(tmp_path: Path) -> None:
    many = mined_folder(tmp_path / "many", [f"package{n}" for n in range(30)], 2)
    read = questions(LocalQuestions(), plan(many).questions)
    packages = [{task.row.repository.package for task in tasks} for tasks in read.tasks.values()]  # type: ignore[union-attr]
    assert all(packages[:2]) and len(set.union(*packages)) == sum(map(len, packages)) == 30
    assert sum(map(len, read.tasks.values())) == 60, "no task is left out as a copy of another"
    apart = with_questions(
        small(questions={"file": str(many), "heldout": str(mined_folder(tmp_path / "b", ["package3"], 3))})
    )
    of_both = questions(LocalQuestions(), apart.questions)
    assert "package3" not in {task.row.repository.package for task in of_both.tasks["train"]}  # type: ignore[union-attr]
    assert len(of_both.tasks["train"]) == 58


def test_bad_folders_and_tools_are_refused_in_a_line(tmp_path: Path) -> None:
    alone = mined_folder(tmp_path / "alone", ["sums"], 3)
    with pytest.raises(ConfigError, match=r"alone has too few rows.*its package decides.*Mine another package"):
        plan(alone)
    with pytest.raises(ConfigError, match="empty has no tasks"):
        plan(mined_folder(tmp_path / "empty", []))
    two = mined_folder(tmp_path / "two", ["sums", "adds"])
    with pytest.raises(ConfigError, match=r"need tools that write files.*It has python"):
        with_questions(small(questions={"file": str(two)}), {"run.student.tools"})
    with pytest.raises(ConfigError, match="has no columns"):
        plan(two, questions={"file": str(two), "columns": {"question": "q"}})
    config = plan(two)
    (two / "tasks" / "sums-0.json").unlink()
    with pytest.raises(DependencyError, match="It has changed"):
        LocalQuestions().read(config.questions)
    (two / "solutions" / "adds-0.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"adds-0\.json cannot be read.*Mine it again"):
        plan(two)


def test_the_references_of_a_folder_are_checked(folder: Path, shared_sandbox: None, tmp_path: Path) -> None:
    done = agent0("questions", "check", str(folder), "--json", home=tmp_path / "home")
    assert done.code == 0, done.err
    assert [row["correct"] for row in done.json["sample"]] == [True] * 4
    assert done.json["kinds"] == {"work folder": 4} and done.json["split"]["validation"] == 1


def test_a_killed_run_is_resumed(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    sizes = {"run.tasks": 2, "run.attempts": 1, "run.iterations": 1, "run.evaluation.validation": 1}
    with killed_before_a_verdict(home, {**sizes, "run.evaluation.test": 0}, "--questions", folder) as (crew, run):
        resumed = agent0("run", "resume", *QUICK, home=home)
        told = facts(crew, run)
    (begun,) = of(told, RunStarted)
    assert RunConfig.recorded(begun.config).questions.sha256 == LocalQuestions().read(plan(folder).questions).sha256
    assert resumed.code == 0 and of(told, RunFinished)
    assert [event.reason for event in of(told, ResultVerified)] == ["nothing was changed"] * 2
    assert len({json.dumps(event.proposal.canonical) for event in of(told, TaskProposed)}) == 2
