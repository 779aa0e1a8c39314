"""Generated repositories: drawn anew each is the same, references are right, and nothing but a repair is."""

import ast
import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agent0.assembly.runtime import port_openers
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.storage.datasets import LocalQuestions
from agent0.ports.sandbox import Sandbox
from agent0.settings import QuestionsConfig
from agent0.tasks.mining.generated import LEVELS, generated
from agent0.tasks.mining.statements import shown_calls
from agent0.tools.snapshots import load
from agent0.verification.repositories.hidden_values import HiddenValues, is_same
from agent0.verification.repositories.mined_task import MinedSolution, MinedTask, hidden_tests_of
from agent0.verification.repositories.visible_check import visible_check
from tests.kept_open import one_sandbox
from tests.terminal import agent0

COUNT = 2
Files = Mapping[str, bytes]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("repairs")
    with one_sandbox():
        done = agent0("task", "generate", "--out", str(path), "--count", str(COUNT), "--json", home=path / "home")
        assert done.code == 0, done.err
        assert [row["tasks"] for row in done.json] == [COUNT] * LEVELS
        yield path


def read(folder: Path) -> list[tuple[MinedTask, MinedSolution]]:
    """Tasks with their solutions, by level."""
    tasks = [MinedTask.model_validate_json(path.read_text()) for path in sorted((folder / "tasks").glob("*.json"))]
    paths = [folder / "solutions" / f"{task.id}.json" for task in tasks]
    solutions = [MinedSolution.model_validate_json(path.read_text()) for path in paths]
    return sorted(zip(tasks, solutions, strict=True), key=lambda pair: (pair[0].level, pair[0].id))


def test_a_number_is_always_the_same_repository_and_another_is_another() -> None:
    for level in range(1, LEVELS + 1):
        drawn = [repository for number in range(12) if (repository := generated(level, 0, number))]
        assert len({repository.package for repository in drawn}) == len(drawn) == 12
        again = generated(level, 0, 3)
        assert again is not None and again.code(again.changes) == drawn[3].code(drawn[3].changes)
        assert generated(level, 1, 3) != again
        assert len(drawn[0].changes) == (2 if level == 4 else 1)
        for repository in drawn:
            assert not set(repository.hidden) & {case for case in repository.visible if case.function != "after"}


def test_tasks_show_what_is_wrong_and_hide_what_decides(folder: Path) -> None:
    for task, solution in read(folder):
        artifacts = FileArtifacts(folder)
        tree, frame = load(task.tree, artifacts), load(solution.frame, artifacts)
        assert not set(frame) & set(tree) and task.level in range(1, LEVELS + 1)
        assert "it is to be" in task.statement and solution.change
        shown = re.findall(r"^- (\w+: .*\)): ", task.statement, re.MULTILINE)
        assert shown and set(shown) < set(solution.fail_to_pass), "more is wrong than is shown"
        wrong = "".join(data.decode() for path, data in tree.items() if path.startswith("tests/"))
        assert not any(f"{call.partition(': ')[2]} ==" in wrong for call in solution.fail_to_pass)


def test_the_calls_that_a_statement_shows_tell_the_bug_from_its_repair(folder: Path) -> None:
    asyncio.run(_seen(folder))


async def _seen(folder: Path) -> None:
    sandbox, artifacts = await port_openers.open_sandbox(), FileArtifacts(folder)
    rows = questions(LocalQuestions(), QuestionsConfig(file=str(folder))).rows.tasks
    rows = tuple({entry.task.level: entry for entry in rows}.values())
    solutions = {task.id: solution for task, solution in read(folder)}
    for entry in rows:
        assert entry.row.repository
        tree = load(entry.row.repository.tree, artifacts)
        repaired = tree | load(solutions[entry.row.id].code, artifacts)
        noted = {path: data + b"\n# Looked at.\n" for path, data in tree.items()}
        shown = shown_calls(entry.task.question)
        assert len(shown) == entry.task.question.count("it is to be")
        right, wrong = [await visible_check(entry.task, tree, work, sandbox) for work in (repaired, noted)]
        assert right.score == wrong.score + len(shown) and f"{len(shown)} are not" in wrong.output
        assert (await visible_check(entry.task, tree, tree, sandbox)).score == 0
        emptied = {path: b"" if path.startswith("tests/") else data for path, data in noted.items()}
        assert (await visible_check(entry.task, tree, emptied, sandbox)).score == wrong.score, "tests are the task's"


def test_only_a_repair_is_right(folder: Path) -> None:
    asyncio.run(_judged(folder))


async def _judged(folder: Path) -> None:
    sandbox = await port_openers.open_sandbox()
    for task, solution in read(folder)[::COUNT]:
        artifacts = FileArtifacts(folder)
        hidden = hidden_tests_of(solution, artifacts)
        assert isinstance(hidden, HiddenValues) and len(hidden.tests) >= 30
        reference, tree = load(solution.code, artifacts), load(task.tree, artifacts)
        assert await hidden.accept(reference, sandbox) == (True, "")
        commented = {path: data + b"\n# Repaired.\n" for path, data in reference.items()}
        assert (await hidden.accept(commented, sandbox))[0] is True
        for name, cheat in cheats(task, tree, reference).items():
            bounded = replace(hidden, seconds=1.0 if name == "sleeping" else hidden.seconds)
            await _refused(name, bounded, cheat, sandbox)


async def _refused(name: str, hidden: HiddenValues, cheat: Files, sandbox: Sandbox) -> None:
    accepted, why = await hidden.accept(cheat, sandbox)
    assert accepted is False and why, name
    if name == "sleeping":
        assert why == "its calls hang"


def cheats(task: MinedTask, tree: Files, reference: Files) -> dict[str, Files]:
    """What earns nothing, by name."""
    code = {path: data.decode() for path, data in tree.items() if path.startswith(f"{task.package}/")}
    first = f"{task.package}/series.py"
    changed = [path for path, text in code.items() if text.encode() != reference[path]]

    def begun(line: str) -> Files:
        return {path: (line + "\n" + text).encode() for path, text in code.items()}

    made: dict[str, Files] = {
        "as it is": tree,
        "empty": {},
        "without tests": {path: text.encode() for path, text in code.items()},
        "tests that pass": {
            **tree,
            "tests/test_series.py": b"def test(): pass",
            "conftest.py": b"import os; os._exit(0)",
        },
        "deleted functions": {**tree, changed[0]: b""},
        "catching all": {**tree, **{path: _caught(code[path]).encode() for path in changed}},
        "shown calls": {**tree, **{path: _special(code[path], task.statement).encode() for path in changed}},
        "values in the folder": {**tree, "values.json": b"[]", "json.py": b"", "zlib.py": b"", "ast.py": b""},
        "ending": begun("import os; os._exit(0)"),
        "leaving": begun("raise SystemExit(0)"),
        "printing": begun("print('[[1]]'); print('passed')"),
        "repr": begun("import builtins; builtins.repr = lambda value: '[]'"),
        "equal to all": begun(
            "import builtins; builtins.eval = lambda *_: type('E', (), {'__eq__': lambda *_: True})()"
        ),
        "runner": begun("import sys; sys._getframe(8 if len(sys.path) < 0 else 0).f_globals.clear()"),
        "fewer results": begun("import json; json.dumps = lambda value: '[[]]'"),
        "sleeping": {**tree, first: (code[first] + "\nimport time\ntime.sleep(30)\n").encode()},
    }
    if len(changed) > 1:
        made |= {f"half of it, {path}": {**tree, path: reference[path]} for path in changed}
    return made


def _caught(text: str) -> str:
    """Functions that return nothing where they fail."""
    guard = (
        "\n\ndef _caught(function):\n    def call(*arguments):\n        try:\n            return function(*arguments)\n"
    )
    guard += "        except Exception:\n            return []\n    return call\n"
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return text + guard + "".join(f"\n{name} = _caught({name})" for name in names) + "\n"


def _special(text: str, statement: str) -> str:
    """Functions that know the values which the statement shows."""
    shown = re.findall(r"\w+: (\w+)\((\[.*?\])\): .*?it is to be (.*), and ", statement)
    lines = ["\n"]
    for name in {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}:
        table = {argument: ast.literal_eval(value) for called, argument, value in shown if called == name}
        lines.append(
            f"_{name} = {name}\ndef {name}(v):\n    return {table!r}[repr(v)] if repr(v) in {table!r} else _{name}(v)\n"
        )
    return text + "\n".join(lines)


@pytest.mark.parametrize(
    ("expected", "value", "same"),
    [
        ("[1, 2]", "[1,2]", True),
        ("3", "3.0", True),
        ("[1]", "(1,)", False),
        ("[]", "raises ValueError", False),
        ("0", "9**9**9", False),
        ("0", "(" * 50_000, False),
        ("None", "<E object>", False),
        ("1", "__import__('os')", False),
    ],
)
def test_values_are_compared_without_running_them(expected: str, value: str, same: bool) -> None:
    assert is_same(expected, value) is same


def test_the_command_goes_on_where_it_was_cut_and_rows_have_levels(folder: Path) -> None:
    ledger = folder / "ledger.jsonl"
    whole, before = ledger.read_bytes(), [task for task, _ in read(folder)]
    last = next(n for n, line in enumerate(whole.splitlines()) if json.loads(line)["candidate"].startswith("3 "))
    ledger.write_bytes(b"".join(whole.splitlines(keepends=True)[:last]) + whole.splitlines()[last][:20])
    again = agent0("task", "generate", "--out", str(folder), "--count", str(COUNT), home=folder / "home")
    assert again.code == 0, again.err
    assert [task for task, _ in read(folder)] == before
    lines = [line for line in ledger.read_bytes().splitlines() if line.endswith(b"}")]
    assert len(lines) == len(set(lines)) == len(whole.splitlines())
    rows = questions(LocalQuestions(), QuestionsConfig(file=str(folder))).rows.tasks
    assert sorted(entry.task.level for entry in rows) == sorted([*range(1, LEVELS + 1)] * COUNT)
    check = agent0("questions", "check", str(folder), "--json", home=folder / "home")
    assert [row["correct"] for row in check.json["sample"]] == [True] * (LEVELS * COUNT), check.err
