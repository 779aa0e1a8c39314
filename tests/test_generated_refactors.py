"""Repositories to simplify: what measures less and gives the same is right, and code that only hides is not."""

import asyncio
from collections.abc import Iterator

import pytest

from agent0.assembly.runtime import port_openers
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.events.values import REFACTORING
from agent0.infra.storage.datasets import LocalQuestions
from agent0.settings import QuestionsConfig
from agent0.tasks.mining.generated import LEVELS
from agent0.verification.repositories.code_measures import UnmeasurableError, measured
from agent0.verification.repositories.simpler_code import SimplerCode
from tests.answers import DomainTask, read_tasks, refactors
from tests.kept_open import one_sandbox
from tests.terminal import agent0


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[DomainTask]]:
    path = tmp_path_factory.mktemp("refactors")
    arguments = ("--kind", "refactor", "--out", str(path), "--count", "1", "--json")
    with one_sandbox():
        done = agent0("task", "generate", *arguments, home=path / "home")
        assert done.code == 0, done.err
        rows = questions(LocalQuestions(), QuestionsConfig(file=str(path))).rows.tasks
        assert {entry.task.domain for entry in rows} == {REFACTORING}
        yield [*read_tasks(path)]


def test_simpler_code_with_the_same_values_is_right(tasks: list[DomainTask]) -> None:
    asyncio.run(_judged(tasks))


async def _judged(tasks: list[DomainTask]) -> None:
    sandbox = await port_openers.open_sandbox()
    assert [task.task.level for task in tasks] == [*range(1, LEVELS + 1)]
    for task in tasks:
        assert not set(task.frame) & {path for path in task.tree if "json" in path}
        assert await task.hidden.grade(task.reference, sandbox) == (True, "", 1.0)
        assert (await task.hidden.grade(task.tree, sandbox))[::2] == (False, 0.0), "nothing was simplified"
        before = measured(task.code(task.tree), task.package)
        assert isinstance(task.hidden, SimplerCode)
        assert before.complexity > task.hidden.hidden.complexity and before.size > task.hidden.hidden.size
        assert f"is {before.complexity}: bring it to {task.hidden.hidden.complexity}" in task.task.statement
    right = refactors.right(tasks[1])
    assert len(right) > 4
    for name in list(right)[:4]:
        assert await tasks[1].hidden.accept(right[name], sandbox) == (True, ""), name
    for name, files in refactors.wrong(tasks[0]).items():
        accepted, why = await tasks[0].hidden.accept(files, sandbox)
        assert accepted is False and why, name


async def test_code_that_hides_is_refused_unrun(tasks: list[DomainTask]) -> None:
    class Unused:
        async def call(self, call: object) -> None:
            raise AssertionError("it was run")

    hiding = {name: files for name, files in refactors.hiding(tasks[3]).items() if "source" in name}
    assert len(hiding) > 10
    for name, files in hiding.items():
        assert not refactors.is_measured(tasks[3], files), name
        accepted, why = await tasks[3].hidden.accept(files, Unused())  # type: ignore[arg-type]
        assert accepted is False and why and "\n" not in why, name


@pytest.mark.parametrize(
    ("text", "complexity"),
    [
        ("x = 1", 0),
        ("def f(v):\n    return v", 1),
        ("def f(v):\n    if v > 1 and v < 3:\n        return 1\n    return 2", 3),
        ("def f(v):\n    return (v > 1) * 3", 2),
        ("f = lambda v: [w for w in v if w]", 3),
        ("def f(v):\n    while not 1 < v < 3:\n        v += 1", 3),
        ("def f(v):\n    try:\n        return v[0]\n    except IndexError:\n        return 0", 2),
        ("def f(v):\n    match v:\n        case 1:\n            return 2\n        case _:\n            return 3", 3),
    ],
)
def test_branches_are_counted_wherever_they_stand(text: str, complexity: int) -> None:
    measures = measured({"p/a.py": text.encode(), "p/b.py": b""}, "p")
    assert measures.complexity == complexity
    documented = f'"""Text: {"x" * 500}."""\n{text}'
    assert measured({"p/a.py": documented.encode()}, "p") == measures
    assert measured({"p/a.py": (text + "\ny = 10 ** 5, 'abc'").encode()}, "p").size > measures.size


@pytest.mark.parametrize(
    "text",
    [
        "def f(",
        "x = 1" + " + 1" * 40_000,
        "import os",
        "from os import path",
        "from collections import abc as os, eval",
        "import p.os.eval as eval",
        f"x = '{'y' * 41}'",
        f"x = b'{'y' * 41}'",
        f"x{'y' * 41} = 1",
        "f(**{}, " + "z" * 41 + "=1)",
        "x = f.__globals__",
        "class __builtins__: pass",
        "global exec",
        "match v:\n    case {**exec}:\n        pass",
        "def f(*, exec): pass",
        "\0",
    ],
)
def test_what_no_measure_sees_is_refused_with_a_line(text: str) -> None:
    with pytest.raises(UnmeasurableError) as raised:
        measured({"p/a.py": text.encode()}, "p")
    assert str(raised.value) and "\n" not in str(raised.value) and len(str(raised.value)) < 200
