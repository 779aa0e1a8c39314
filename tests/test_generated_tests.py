"""Repositories that ask for tests: what rejects wrong versions is paid, what is no test or adds nothing is not."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent0.assembly.runtime import port_openers
from agent0.chat_format import format_call
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.events.tasks import ResultVerified, RewardAssigned
from agent0.events.values import TESTING
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.storage.datasets import LocalQuestions
from agent0.tasks.mining.generated import LEVELS
from agent0.tools.snapshots import load
from agent0.verification.repositories.mined_task import MinedSolution, hidden_tests_of
from agent0.verification.repositories.wrong_versions import LARGEST, MOST_LINES, TESTS, WrongVersions
from tests.kept_open import one_sandbox
from tests.terminal import agent0
from tests.test_mined_runs import of, plan, told_by


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("testing")
    arguments = ("--kind", "tests", "--out", str(path), "--count", "1", "--json")
    with one_sandbox():
        done = agent0("task", "generate", *arguments, home=path / "home")
        assert done.code == 0, done.err
        yield path


def read(folder: Path) -> list[tuple[WrongVersions, str]]:
    """What decides about each task, and the perfect student's tests."""
    artifacts, pairs = FileArtifacts(folder), []
    for path in sorted((folder / "solutions").glob("*.json")):
        solution = MinedSolution.model_validate_json(path.read_text())
        hidden = hidden_tests_of(solution, artifacts)
        assert isinstance(hidden, WrongVersions)
        pairs.append((hidden, load(solution.code, artifacts)[TESTS].decode()))
    assert len(pairs) == LEVELS
    return sorted(pairs, key=lambda pair: len(pair[0].tests))


def test_tests_that_reject_wrong_versions_are_paid(folder: Path) -> None:
    asyncio.run(_paid(folder))


async def _paid(folder: Path) -> None:
    sandbox = await port_openers.open_sandbox()
    for level, (hidden, reference) in enumerate(read(folder), 1):
        assert len(hidden.tests) == level + 2
        assert (await hidden.grade({TESTS: reference.encode()}, sandbox))[::2] == (True, 1.0)
    first, *others = reference.split("\n\n\n")
    correct, why, credit = await hidden.grade({TESTS: first.encode()}, sandbox)
    assert correct is False and credit is not None and 0 < credit < 1 and f" of {LEVELS + 2} wrong versions" in why
    again = "\n".join(first.replace("test_0", f"test_again_{n}") for n in range(2))
    redundant = await hidden.grade({TESTS: f"{first}\n{again}".encode()}, sandbox)
    assert redundant[2] == pytest.approx(max(0.0, credit - 0.5 / (LEVELS + 2)), abs=1e-3)
    many = "\n".join(first.replace("test_0", f"test_again_{n}") for n in range(LEVELS + 3))
    assert (await hidden.grade({TESTS: f"{reference}\n{many}".encode()}, sandbox))[0] is False, "all, and a heap beside"
    wrong = others[-1].rpartition("==")[0] + "== 'nothing'"
    assert (await hidden.grade({TESTS: f"{first}\n\n\n{wrong}".encode()}, sandbox))[::2] == (False, 0.0)


NO_TESTS = {
    "nothing": "",
    "constant": "def test():\n    assert 1 == 1\n",
    "true": "def test():\n    assert True\n",
    "not equal": "def test():\n    assert {call} != 5\n",
    "source": "import inspect\ndef test():\n    assert inspect.getsource({name}) == ''\n",
    "version": "def test():\n    assert {name}.__code__.co_code == b''\n",
    "import": "import os\nos._exit(0)\n",
    "default": "def test(x=__import__('os').getcwd()):\n    pass\n",
    "nested call": "def test():\n    assert {name}({name}([1])) == 3\n",
    "computed": "def test():\n    assert {name}([1]) == {name}([1])\n",
    "keyword": "def test():\n    assert {name}(values=[1]) == 1\n",
    "eval": "def test():\n    assert eval('1') == 1\n",
    "loop": "def test():\n    for n in [1]:\n        assert {call} == n\n",
    "swallowed": "def test():\n    try:\n        assert {call} == 1\n    except Exception:\n        pass\n",
    "skipped": "import pytest\npytest.skip('no', allow_module_level=True)\n",
    "twice": "def test():\n    assert {call} == 0\ndef test():\n    assert {call} == 0\n",
    "many": "def test():\n" + "    assert {call} == 0\n" * (MOST_LINES + 1),
    "long": "#" * (LARGEST + 1),
    "no Python": "def test(:\n",
    "deep": "def test():\n    assert {name}(" + "[" * 5000 + "]" * 5000 + ") == 1\n",
    "NUL": "def test():\n    assert '\0' == 1\n",
}


async def test_what_is_no_test_is_never_run_and_earns_nothing(folder: Path) -> None:
    hidden, reference = read(folder)[0]
    call = reference.partition("assert ")[2].partition(" ==")[0]

    class Unused:
        async def call(self, call: object) -> None:
            raise AssertionError("it was run")

    for name, text in NO_TESTS.items():
        written = text.replace("{call}", call).replace("{name}", call.partition("(")[0])
        accepted, why, credit = await hidden.grade({TESTS: written.encode()}, Unused())  # type: ignore[arg-type]
        assert (accepted, credit) == (False, 0.0) and why and "\n" not in why, name


def test_a_run_pays_for_each_version_that_is_rejected(
    folder: Path, shared_sandbox: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = {hidden.hidden.package: text for hidden, text in read(folder)}
    rows = questions(LocalQuestions(), plan(folder).questions).rows.tasks
    assert {entry.task.domain for entry in rows} == {TESTING} and plan(folder).questions.domain == TESTING

    def some(package: str) -> str:
        return format_call("write_file", {"path": TESTS, "content": tests[package].split("\n\n\n")[0]})

    told = told_by(plan(folder, tasks=1, student={"max_tokens": 2000}), some, monkeypatch)
    (verdict,) = of(told, ResultVerified)
    assert verdict.correct is False and 0 < verdict.credit < 1 and "wrong versions are rejected" in verdict.reason
    (receipt,) = [event for event in of(told, RewardAssigned) if event.role == "student"]
    assert {part.name: part.value for part in receipt.parts}["subgoals"] == verdict.credit
