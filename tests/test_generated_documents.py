"""Repositories to document: a docstring is right where whoever reads it alone writes the function again."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent0.assembly.runtime import port_openers
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.events.values import DOCUMENTING
from agent0.infra.storage.datasets import LocalQuestions
from agent0.ports.models import Generation
from agent0.ports.sandbox import Sandbox
from agent0.settings import QuestionsConfig, VerificationConfig
from agent0.settings.roles import JudgeConfig
from agent0.tasks.mining.docstring_grammar import (
    DRAWN,
    UnreadableStatementError,
    argument,
    changes_of,
    drawn_functions,
    inexact,
    read_statements,
    values_by,
)
from agent0.tasks.mining.documented import FUNCTIONS, documented
from agent0.tasks.mining.generated import LEVELS
from agent0.verification.panel import VerificationContext
from agent0.verification.panel.opinion import docstring_reader
from agent0.verification.repositories.round_trip import RoundTrip
from agent0.verification.verifiers import verifier_for
from tests.answers import DomainTask, documents, read_tasks
from tests.kept_open import one_sandbox
from tests.terminal import agent0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("documents")
    arguments = ("--kind", "document", "--out", str(path), "--count", "1", "--json")
    with one_sandbox():
        done = agent0("task", "generate", *arguments, home=path / "home")
        assert done.code == 0, done.err
        yield path


@pytest.mark.parametrize("level", range(1, LEVELS + 1))
def test_each_statement_of_a_drawn_function_matters(level: int) -> None:
    names = set()
    for number in range(4):
        repository, docstrings = documented(level, 0, number)
        names.add(repository.package)
        assert documented(level, 0, number) == (repository, docstrings) and len(docstrings) == FUNCTIONS[level]
        for name, statements in docstrings.items():
            assert len(statements) == level + 2
            assert read_statements(" ".join(statement.text for statement in statements)) == statements
            inputs = [argument(call.expression) for call in repository.hidden if call.function == name]
            expected = values_by(statements, inputs)
            drawn = [values_by(other, inputs) for other in drawn_functions(statements)]
            assert len(drawn) == DRAWN and not inexact(statements, inputs, expected)
            for at, statement in enumerate(statements):
                assert all(values_by(other, inputs) != expected for other in changes_of(statements, at))
                short = values_by((*statements[:at], *statements[at + 1 :]), inputs)
                assert statement.returns or (short in drawn and short != expected), "a wrong one passes"
    assert len(names) == 4


def test_docstrings_from_which_functions_are_written_again_are_right(folder: Path) -> None:
    asyncio.run(_judged(folder))
    rows = questions(LocalQuestions(), QuestionsConfig(file=str(folder))).rows.tasks
    assert {entry.task.domain for entry in rows} == {DOCUMENTING}


async def _judged(folder: Path) -> None:
    sandbox, tasks = await port_openers.open_sandbox(), [*read_tasks(folder)]
    assert [task.task.level for task in tasks] == [*range(1, LEVELS + 1)]
    for task in tasks:
        assert await _grade(task, task.reference, sandbox) == (True, "", 1.0)
        assert (await _grade(task, task.tree, sandbox))[::2] == (False, 0.0)
    for name, files in list(documents.right(tasks[1]).items())[:6]:
        assert (await _grade(tasks[1], files, sandbox))[0] is True, name
    wrong = documents.wrong(tasks[0])
    assert len(wrong) > 40 and set(wrong) > documents.EARNING_NOTHING
    for name, files in wrong.items():
        correct, why, credit = await _grade(tasks[0], files, sandbox)
        assert correct is False and why and "\n" not in why, name
        assert credit == 0.0 or name not in documents.EARNING_NOTHING, name


async def _grade(task: DomainTask, files: Any, sandbox: Sandbox, reader: Any = None) -> Any:
    assert isinstance(task.hidden, RoundTrip)
    return await task.hidden.grade(files, sandbox, reader)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "Return the values",
        "Add 1 to each value.",
        "Add one to each value. Return the values.",
        "Add 12345 to each value. Return the values.",
        "Return the values. Return the values.",
        "Return the values. Reverse the order.",
        "Reverse the order.\0 Return the values.",
        "Reverse the order. " * 9 + "Return the values.",
        "return values[::-1]",
        "Reverse the order. Return the values." * 2,
    ],
)
def test_what_is_no_statement_is_not_read(text: str) -> None:
    with pytest.raises(UnreadableStatementError) as raised:
        read_statements(text)
    assert str(raised.value) and "\n" not in str(raised.value)


def test_values_stay_small() -> None:
    program = read_statements("Replace each value by its square. " * 7 + "Return the values.")
    assert values_by(program, [[9], [1]]) == [None, [1]]
    assert values_by(read_statements("Replace each value by its remainder by 0. Return the values."), [[1]]) == [None]


async def test_a_model_reads_docstrings_beside_the_grammar(folder: Path) -> None:
    sandbox, (task, *_) = await port_openers.open_sandbox(), read_tasks(folder)
    source = task.tree[f"{task.package}/series.py"].decode()
    asked = list[str]()

    def reader(reply: str) -> Any:
        async def generate(request: Any) -> Generation:
            asked.append(request.turns[-1].content)
            return Generation(reply)

        models: Any = SimpleNamespace(open=lambda _: SimpleNamespace(generate=generate))
        return docstring_reader(models, JudgeConfig(provider="scripted"), 0, "run")

    assert (await _grade(task, task.reference, sandbox, reader(f"```python\n{source}```")))[0] is True
    assert len(asked) == FUNCTIONS[1] and not any(">>>" in text or "result" in text for text in asked)
    for reply, correct in {
        source.replace("return", "return 0 #"): False,
        f"import os\nos._exit(0)\n{source}": False,
        "I do not know.": None,
        "": None,
    }.items():
        accepted, why, _ = await _grade(task, task.reference, sandbox, reader(reply))
        assert accepted is correct and "model" in why, reply
    assert docstring_reader(SimpleNamespace(), JudgeConfig(), 0, "run") is None  # type: ignore[arg-type]


async def test_where_a_judge_is_named_and_not_asked_nothing_is_decided(folder: Path) -> None:
    plan, file = QuestionsConfig(file=str(folder)), LocalQuestions()
    row = questions(file, plan).rows.tasks[0].task
    assert row.row is not None
    judge, sandbox = verifier_for(row), await port_openers.open_sandbox()
    rules = VerificationConfig.model_validate({"judge": {"provider": "scripted"}})
    for named, correct in ((VerificationConfig(), True), (rules, None)):
        context = VerificationContext(rules=named, artifacts=file.files(plan))
        (verdict,) = await judge.judge(row, [row.row.answer], sandbox, context)
        assert verdict.correct is correct and verdict.reason
