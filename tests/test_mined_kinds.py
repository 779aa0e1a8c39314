"""Other work on functions of packages than repairs: a small package that the tests write, the real sandbox. What is
accepted has a reference that its verdict accepts, and cheats earn nothing."""

import asyncio
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from agent0.assembly.runtime import port_openers
from agent0.evaluation.benchmarks.rows.mined_rows import DOMAINS
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.infra.storage.datasets import LocalQuestions
from agent0.settings import QuestionsConfig
from agent0.verification.repositories.determining_examples import DeterminingExamples
from agent0.verification.repositories.mined_task import MinedSolution
from agent0.verification.repositories.source_tree import is_test
from tests.answers import DomainTask, read_tasks
from tests.kept_open import one_sandbox
from tests.terminal import Said, agent0
from tests.test_mining import META, Index, sdist

PARTS = '''"""Parts of numbers."""

import random
import time


def clamp(value, low, high):
    """Return value, but low or high where it is beyond.

    >>> clamp(1, 2, 4)
    2
    >>> clamp(5, 2, 4)
    4
    >>> clamp(3, 2, 4)
    3
    """
    if value < low:
        return low
    elif value > high:
        return high
    else:
        return value


def chunks(values, size):
    """Yield lists of size values.

    >>> list(chunks([1, 2, 3], 2))
    [[1, 2], [3]]
    """
    part = []
    for value in values:
        part.append(value)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part


def sign(value):
    """Return 1, 0 or -1 by where value is."""
    if value > 0:
        return 1
    if value < 0:
        return -1
    return 0


def forever(value):
    """Yield value again and again."""
    while True:
        yield value


def drawn(count):
    """Return another number each time."""
    return random.random() + time.perf_counter() + count


def made(value):
    """Return what has no literal."""
    return object(), value
'''
CODE = '"""Sums."""\n\nfrom sums.parts import chunks, clamp, drawn, forever, made\n'
TESTS = """import pytest
import sums
from sums import parts

@pytest.mark.parametrize("value, right", [(1, 2), (2, 2), (3, 3), (4, 4), (5, 4)])
def test_clamp(value, right):
    assert parts.clamp(value, 2, high=4) == right

@pytest.mark.parametrize("value, right", [(-2, -1), (-1, -1), (0, 0), (1, 1), (2, 1)])
def test_sign(value, right):
    assert parts.sign(value) == right

def test_chunks():
    assert list(sums.chunks("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(sums.chunks([1, 2, 3, 4], 2)) == [[1, 2], [3, 4]]
    assert list(sums.chunks(iter([1]), 3)) == [[1]]

def test_others():
    assert next(sums.forever(1)) == 1
    assert sums.drawn(2) != sums.drawn(2)
    assert sums.made(1)[1] == 1

def test_nothing():
    assert sums.__name__ == "sums"

def test_nothing_else():
    assert sums.parts
"""
FILES = {"PKG-INFO": META, "src/sums/__init__.py": CODE, "src/sums/parts.py": PARTS, "tests/test_sums.py": TESTS}
ANSWERS = {
    "review": "reviews",
    "tests": "written_tests",
    "refactor": "function_refactors",
    "document": "function_documents",
}
COUNTS = {"review": 3}


def mine(index: Index, folder: Path, kind: str, *more: str) -> Said:
    count = str(COUNTS.get(kind, 1))
    arguments = ("--kind", kind, "--count", count, "--index", index.url, "--out", str(folder), *more)
    return agent0("task", "mine", "sums", *arguments, home=folder.parent / "home")


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    served = Index()
    served.releases["sums"] = [("0.9", b"not read"), ("1.0", sdist(FILES))]
    with one_sandbox():
        yield served
    served.close()


@pytest.fixture(scope="module", params=ANSWERS)
def folder(request: pytest.FixtureRequest, index: Index, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp(request.param) / "mined"
    done = mine(index, path, request.param, "--json")
    assert done.code == 0, done.err
    assert done.json[0]["accepted"] == COUNTS.get(request.param, 1), ledger(path)
    return path


def ledger(folder: Path) -> list[str]:
    return (folder / "ledger.jsonl").read_text().splitlines()


def test_what_is_mined_is_decided_by_calls_that_tests_make(folder: Path) -> None:
    rows = questions(LocalQuestions(), QuestionsConfig(file=str(folder))).rows.tasks
    tasks = [*read_tasks(folder)]
    for task in tasks:
        solution = MinedSolution.model_validate_json((folder / "solutions" / f"{task.task.id}.json").read_bytes())
        assert solution.trials.model_dump() == {"reference": 3, "empty": 0, "random": 0}
        assert [(task.task.licence, source.version) for source in solution.sources] == [("MIT", "1.0")]
        shown = [
            path for path in task.tree if path.endswith(".json") or (is_test(path) and task.task.kind != "refactor")
        ]
        assert not shown, "nothing shows the answer"
        assert not {"forever", "drawn", "made"} & set(task.task.statement.split()), "what is no literal decides nothing"
    assert {entry.task.domain for entry in rows} == {DOMAINS[tasks[0].task.kind]}
    asyncio.run(_judged(tasks))


async def _judged(tasks: list[DomainTask]) -> None:
    """Right answers are accepted, wrong ones not: cheats, and files beside what is asked for."""
    sandbox = await port_openers.open_sandbox()
    answers = import_module(f"tests.answers.{ANSWERS[tasks[0].task.kind]}")
    for task in tasks:
        for name, files in {**answers.right(task), "the reference": task.reference}.items():
            assert (await task.hidden.accept(files, sandbox))[0] is True, (task.task.id, name)
        for name, files in {**answers.wrong(task), "nothing": {}, "untouched": task.tree}.items():
            accepted, why = await task.hidden.accept(files, sandbox)
            assert accepted is False and why and "\n" not in why, (task.task.id, name)


def test_where_a_model_reads_docstrings_it_must_understand_the_words(folder: Path) -> None:
    for task in read_tasks(folder):
        if isinstance(task.hidden, DeterminingExamples):
            asyncio.run(_understood(task, task.hidden))


async def _understood(task: DomainTask, hidden: DeterminingExamples) -> None:
    sandbox, programs = (
        await port_openers.open_sandbox(),
        {PARTS: True, "": None, "def f(": False, "clamp = max": False},
    )
    for program, right in programs.items():

        async def read(signature: str, words: str, written: str = program) -> str:
            assert signature.startswith("def ") and ">>>" not in words
            return written

        assert (await hidden.grade(task.reference, sandbox, read))[0] is right, program


def test_a_third_of_reviews_are_clean(folder: Path) -> None:
    tasks = [*read_tasks(folder)]
    if tasks[0].task.kind == "review":
        assert sorted(len(task.hidden.tests) for task in tasks) == [0, 1, 1]


def test_mining_of_a_kind_goes_on_where_it_was_cut(index: Index, folder: Path) -> None:
    lines, asked, kind = ledger(folder), len(index.asked), next(read_tasks(folder)).task.kind
    if kind == "tests":
        mine(index, folder, kind)
        assert ledger(folder) == lines and len(index.asked) == asked
        (folder / "ledger.jsonl").write_text("\n".join([*lines[:-2], lines[-2][:30]]))
        mine(index, folder, kind)
        names = [json.loads(line).get("candidate") for line in ledger(folder) if line.endswith("}")]
        assert names == [json.loads(line).get("candidate") for line in lines]


def test_a_package_without_literals_is_told(index: Index, tmp_path: Path) -> None:
    bare = {**FILES, "tests/test_sums.py": "import sums\n\ndef test():\n    assert sums.made(object())\n"}
    index.releases["bare"] = [("1.0", sdist(bare))]
    done = agent0("task", "mine", "bare", "--kind", "review", "--index", index.url, "--out", str(tmp_path / "m"))
    assert done.code == 1 and "its tests call no public function with literals" in done.out
