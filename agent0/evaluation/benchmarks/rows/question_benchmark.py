"""A file of the user's questions, or a folder of mined tasks, as a benchmark: every row is an item, decided as a run
decides about it."""

from pathlib import Path
from typing import cast

from agent0.evaluation.benchmarks import Benchmark, Domain, Item, benchmarks, coding
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.evaluation.benchmarks.rows.question_rows import RowTask
from agent0.events.values import Task
from agent0.grading import Grade
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import QuestionFile
from agent0.settings import QuestionsConfig
from agent0.verification.programs import Problem
from agent0.verification.verifiers import NO_CONTEXT, verifier_for

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".gz")
"""How names of files of questions end, where there is none of the name yet."""


def is_question_file(name: str) -> bool:
    """Whether ``name`` is the path of a file of questions, and not the name of a benchmark."""
    is_benchmark = name.partition(":")[0] in benchmarks()
    return not is_benchmark and ("/" in name or name.endswith(SUFFIXES))


def question_benchmark(path: str, file: QuestionFile, plan: QuestionsConfig) -> tuple[Benchmark, list[Item], str]:
    """Read the file of questions or folder of mined tasks ``path`` as a benchmark, its columns as ``plan`` has them;
    returns it, its items in the file's order, and the file's sha256.

    Raises:
        ConfigError: a row is at fault, named by file and line. DependencyError: the file is not there.
    """
    chosen = plan.model_copy(update={"file": path, "sha256": "", "heldout": "", "heldout_sha256": ""})
    chosen = chosen.model_copy(update={"sha256": file.read(chosen).sha256})
    rows = questions(file, chosen)
    entry = Benchmark(
        name=path if Path(path).name in benchmarks() else Path(path).name,
        title=f"the {'tasks' if rows.mined else 'questions'} of {Path(path).name}",
        domain=cast("Domain", chosen.domain or rows.domain),
        judge=_judge,
        licence="its owner's",
        source=path,
        in_folders=rows.mined or rows.over_steps,
        in_environment=any(row.row.episode and not row.row.episode.tools for row in rows.rows.tasks),
    )
    return entry, [_item(row) for row in rows.rows.tasks], chosen.sha256


def _item(entry: RowTask) -> Item:
    row, task = entry.row, entry.task
    if row.repository or (row.episode and row.episode.tools):
        facts = {"level": str(task.level), "subject": task.domain}
        return Item(row.id, task.question, row.answer, row.answer, facts=facts, data=task.model_dump_json())
    if row.tests:
        problem = Problem(row.tests, "", row.entry, wall_s=30.0, reference=row.answer)
        return Item(row.id, task.question, row.entry or "tests", row.answer, problem=problem)
    return Item(row.id, task.question, row.answer, f"\\boxed{{{row.answer}}}", data=task.model_dump_json())


async def _judge(item: Item, reply: str, answer: str | None, sandbox: Sandbox) -> Grade:
    """By the tests of a program, else by the verifier of the row's answer."""
    if item.problem is not None:
        return await coding.judge(item, reply, answer, sandbox)
    task = Task.model_validate_json(item.data)
    (verdict,) = await verifier_for(task).judge(task, [answer], sandbox, NO_CONTEXT)
    return Grade(verdict.correct, verdict.reason, verdict.expected, verdict.got)
