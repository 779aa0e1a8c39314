"""Which columns of a file of questions hold what: those that the settings name, else those with a usual name."""

import ast
import builtins
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks import Benchmark, Item, answers, coding
from agent0.evaluation.benchmarks.rows import ColumnError, Row, published
from agent0.evaluation.benchmarks.rows.question_template import Render, question_template
from agent0.events.values import JUDGED
from agent0.grading.answer_types import kinds
from agent0.grading.tolerance import is_tolerance, measured_in
from agent0.settings import QuestionsConfig
from agent0.tools import tools
from agent0.turns.assertions import has_assertion, parsed
from agent0.verification.programs import Problem
from agent0.verification.programs.source import top_level

USUAL: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "problem", "prompt", "instruction", "query", "input"),
    "answer": ("answer", "final_answer", "expected", "target", "output", "label"),
    "id": ("id",),
    "tests": ("tests", "test_list"),
    "tolerance": ("tolerance",),
    "kind": ("answer_type",),
    "level": ("level", "difficulty"),
    "domain": ("domain",),
    "tools": ("tools",),
}
"""What a column may hold -> names by which it is recognised, in any case, the first that is there."""
TEMPLATE = "the template"
"""Where questions are that it makes."""
NO_TOOLS = "none"
"""In the column of tools: no tool may be called."""
_SHOWN = 60
"""Characters of a value that an error repeats."""


@dataclass(frozen=True)
class Columns:
    """How rows are read. ``names``: what is read -> its column; ``rivals``: other columns that may hold the answer;
    ``unread``: all others. A ``layout`` of a publisher names no columns."""

    layout: Benchmark
    names: Mapping[str, str]
    rivals: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The columns in words."""
        if not self.names:
            return f"as {self.layout.name} is published"
        names = ((role, self.names[role]) for role in USUAL if role in self.names)
        return ", ".join(role if role == name else f"{role}: {name}" for role, name in names)


def columns_of(fields: Iterable[str], plan: QuestionsConfig) -> Columns:
    """Recognise the columns among ``fields``, those of all rows.

    Raises:
        ConfigError: ``plan`` names a column for what no row has.
    """
    fields = [*fields]
    if unknown := sorted(plan.columns.keys() - USUAL.keys()):
        why = f"A column may hold {', '.join(USUAL)}."
        raise ConfigError(f"run.questions.columns names {unknown[0][:80]!r}.", why, "--columns question=Q,answer=A")
    if plan.kind not in ("", *kinds(), JUDGED):
        why = f"There are {', '.join((*kinds(), JUDGED))}."
        raise ConfigError(f"There is no kind of answer {plan.kind[:_SHOWN]!r}.", why, "--answer-type KIND")
    render, used = question_template(plan.template) if plan.template else (None, frozenset[str]())
    if not (render or plan.columns.keys() & {"question", "answer", "tests"}) and (layout := _published(set(fields))):
        return Columns(layout, {})
    by_name = {field.casefold(): field for field in reversed(fields)}
    usual = {role: [by_name[name] for name in names if name in by_name] for role, names in USUAL.items()}
    names = {role: candidates[0] for role, candidates in usual.items() if candidates} | dict(plan.columns)
    rivals = tuple(usual["answer"][1:]) if "answer" not in plan.columns and "tests" not in names else ()
    if render:
        names["question"] = TEMPLATE
    also = {"code"} if "tests" in names else {"solution"} if names.get("answer", "answer") == "answer" else set[str]()
    read = {*names.values(), *rivals, *used, *also}
    layout = replace(
        answers.MATH,
        name="questions",
        source="GSM8K, MATH, SVAMP, MBPP",
        convert=partial(_row, names, rivals, plan, render),
        read=_item,
        about=("level", "tolerance", "kind", "domain", "tools"),
    )
    return Columns(layout, names, rivals, tuple(field for field in fields if field not in read))


def _published(fields: set[str]) -> Benchmark | None:
    """The layout of a publisher, by fields that only it has."""
    if {"test_list", "code"} <= fields and fields & {"task_id", "id"}:
        return coding.MBPP
    if "Body" in fields:
        return answers.SVAMP
    return answers.MATH if "problem" in fields and fields & {"solution", "answer"} else None


def _row(
    names: Mapping[str, str],
    rivals: tuple[str, ...],
    plan: QuestionsConfig,
    render: Render | None,
    row: Row,
    file: str,
    n: int,
) -> Row:
    """A row with question and answer, as GSM8K has it, or with an answer that is no number; or with tests."""
    if render:
        row = {**row, TEMPLATE: render(row)}
    optional = {role: row[column] for role, column in names.items() if row.get(column) not in (None, "")}
    tests = _tests(names["tests"], optional["tests"]) if "tests" in optional else ""
    if "tests" in names and not tests:
        _require_one_column(names["tests"], row)
    answer, question = names.get("answer", "answer"), names.get("question", "question")
    if not tests and (answer in row or not row.get("solution")):
        row = {**row, "answer": _flag(row[answer])}
    fields = {**row, "question": row[question]}
    fields["id"] = str(optional.get("id", f"{PurePosixPath(file).name.partition('.')[0]}/{n}"))
    fields |= _deciding(names, optional, plan)
    if "level" in optional:
        fields["level"] = _level(names["level"], optional["level"])
    if tests:
        code = row.get(answer, row.get("code"))
        return {**fields, "answer": "" if code is None else str(code), "tests": tests}
    fields.pop("tests", None)
    for rival in rivals:
        if row.get(rival) not in (None, "") and str(row[rival]).strip() != str(row[answer]).strip():
            reason = f"{str(row[rival])[:_SHOWN]!r} may be the answer, and {answer!r} has {str(row[answer])[:_SHOWN]!r}"
            raise ColumnError(rival, f"{reason}; name the column: --columns answer={answer}")
    return _with_answer(fields, file, n, answer)


def _require_one_column(tests: str, row: Row) -> None:
    """Tests of some rows in another column than those of the others would not be read."""
    for column, value in row.items():
        if column.casefold() in USUAL["tests"] and value:
            raise ColumnError(column, f"its tests are there, those of other rows in {tests!r}; use one column")


def _level(column: str, value: object) -> str:
    """How hard a row is, which may say ``Level 5`` as MATH does."""
    text = f"{value:g}" if isinstance(value, float) else str(value).strip().removeprefix("Level ")
    if not (text.isdecimal() and 1 <= len(text) <= 3 and int(text)):
        raise ColumnError(column, f"{str(value)[:_SHOWN]!r} is no level: a whole number from 1 to 999")
    return text


def _flag(value: object) -> object:
    """JSON's true and false as words; anything else as it is."""
    return str(value) if isinstance(value, bool) else value


def _with_answer(row: Row, file: str, n: int, column: str) -> Row:
    if row.get("answer") in (None, "") and row.get("solution"):
        return published.math(row, file, n)
    if isinstance(row["answer"], list | dict):
        raise ColumnError(column, f"{json.dumps(row['answer'])[:_SHOWN]} is neither text nor a number")
    try:
        return published.gsm8k(row, file, n)
    except ValueError:
        return published.math(row, file, n)


def _deciding(names: Mapping[str, str], optional: Row, plan: QuestionsConfig) -> dict[str, str]:
    """The kind of a row's answer and its tolerance, from its columns or for all rows; its domain and its tools."""
    kind, tolerance = str(optional.get("kind", plan.kind)), str(optional.get("tolerance", plan.tolerance))
    if kind and kind not in (*kinds(), JUDGED):
        allowed = ", ".join((*kinds(), JUDGED))
        raise ColumnError(names.get("kind", ""), f"there is no kind of answer {kind[:_SHOWN]!r}: {allowed}")
    if tolerance and not is_tolerance(tolerance):
        column = names.get("tolerance", "")
        raise ColumnError(column, f"{tolerance[:_SHOWN]!r} is no tolerance: a number, or a share as 1%")
    domain, names_of_tools = str(optional.get("domain", "")).strip().lower(), _tools(optional.get("tools", ()))
    if domain and not re.fullmatch(r"[a-z0-9_-]+", domain):
        raise ColumnError(names.get("domain", ""), f"{domain[:_SHOWN]!r} is no domain: letters, digits, _ and -")
    if unknown := next((name for name in names_of_tools if name not in (NO_TOOLS, *tools())), ""):
        allowed = ", ".join((NO_TOOLS, *tools()))
        raise ColumnError(names.get("tools", ""), f"there is no tool {unknown[:_SHOWN]!r}: {allowed}")
    return {"kind": kind, "tolerance": tolerance, "domain": domain, "tools": ",".join(names_of_tools)}


def _tools(value: object) -> list[str]:
    """Names of tools: a list, or a text with commas."""
    names = value if isinstance(value, list | tuple) else str(value).split(",")
    return [name for each in names if (name := str(each).strip())]


def _tests(column: str, value: object) -> str:
    """Tests as one text: a list of them, also as JSON in a text, or a program."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ColumnError(column, f"its list of tests is no JSON: {error}") from error
    text = "\n".join(map(str, value)) if isinstance(value, list) else str(value)
    if not has_assertion(text):
        raise ColumnError(column, f"{text[:_SHOWN]!r} asserts nothing")
    return text


def _item(row: Row) -> Item:
    """A row as an item: what decides about a program are its tests, about an answer the answer."""
    if not row.get("tests"):
        assert answers.MATH.read is not None  # noqa: S101 - it has fields, so it has rows
        item = answers.MATH.read(row)
        if row["tolerance"] and measured_in(item.gold) is None:
            raise ColumnError("tolerance", f"it is for numbers, and the answer is {item.gold[:_SHOWN]!r}")
        return item
    tests, code, question = str(row["tests"]), str(row["answer"]), str(row["question"])
    entry = next((name for name in sorted(top_level(code)) if re.search(rf"\b{name}\(", tests)), "") or _called(tests)
    if entry not in question:
        question = f"{question} Reply with the whole Python function. It must pass this test:\n{tests.splitlines()[0]}"
    reference = f"```python\n{code}\n```" if code.strip() else ""
    problem = Problem(tests, "", entry, wall_s=30.0, reference=reference)
    return Item(str(row["id"]), question, entry or "tests", reference, problem=problem)


def _called(tests: str) -> str:
    """The function that the first assertion calls; empty where it calls none."""
    asserted = (node for node in parsed(tests) if isinstance(node, ast.Assert))
    calls = (node for assertion in asserted for node in ast.walk(assertion) if isinstance(node, ast.Call))
    names = (call.func.id for call in calls if isinstance(call.func, ast.Name))
    return next((name for name in names if not hasattr(builtins, name)), "")
