"""The tasks in a file of questions, by split: rows with answers as GSM8K, MATH, SVAMP and MBPP are published, or with
columns that the settings name."""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import PurePosixPath

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks import Benchmark, Item, answers, coding, read_items
from agent0.evaluation.benchmarks.rows import Row, files_in, published, read_rows
from agent0.events.values import QUESTIONS, SourceRow, Split, Task
from agent0.ports.storage import Dataset, QuestionFile
from agent0.rollout.teacher import normal
from agent0.settings import QuestionsConfig, RunConfig
from agent0.tasks.splits import split_of

LONGEST = 32_768
"""Characters of a row: its task is in events, which hold 64 KB."""
_PUBLISHED = {"test_list": coding.MBPP, "Body": answers.SVAMP, "problem": answers.MATH}
"""A field that tells the layout of rows -> how these are read."""
_KEEPS_ID = [entry.name for entry in _PUBLISHED.values()]
"""Layouts without a column ``id``: where rows have one all the same, it is theirs."""


@dataclass(frozen=True)
class QuestionSet:
    """The tasks of a file in its order, by split, and their domain."""

    domain: str
    tasks: Mapping[Split, tuple[Task, ...]]


def questions(file: QuestionFile, plan: QuestionsConfig) -> QuestionSet:
    """Read the tasks of the file that ``plan`` names. A question's normalised text decides its split.

    Raises:
        ConfigError: no row, one that is none, without an answer, or with the id of another; named by file and line.
        DependencyError: the file is not there, or not the one that the run began with.
    """
    return _read(file.read(plan), plan)


@lru_cache(maxsize=4)  # every request asks for it
def _read(rows: Dataset, plan: QuestionsConfig) -> QuestionSet:
    entry = _layout(rows, plan)
    items = read_items(replace(entry, convert=partial(_checked, entry)), rows.text, rows.name)
    domain = plan.domain or entry.domain
    tasks: dict[Split, list[Task]] = {"train": [], "validation": [], "test": []}
    for item in items:
        task = _task(item, domain)
        tasks[split_of(task.canonical)].append(task)
    return QuestionSet(domain, {split: tuple(of_split) for split, of_split in tasks.items()})


def _layout(rows: Dataset, plan: QuestionsConfig) -> Benchmark:
    """How the rows are read: by the columns that are named, else by the first row's fields."""
    own = replace(answers.MATH, name="questions", source="GSM8K, MATH, SVAMP, MBPP", convert=partial(_answered, plan))
    if plan.question or plan.answer or plan.id:
        return own
    first = next((row for name, text in files_in(rows.text, rows.name) for _, row in read_rows(text, name)), {})
    return next((entry for field, entry in _PUBLISHED.items() if field in first), own)


def _answered(plan: QuestionsConfig, row: Row, file: str, number: int) -> Row:
    """A row with question and answer, as GSM8K has it, or with an answer that is no number."""
    columns = {"question": plan.question, "answer": plan.answer, "id": plan.id}
    row = {**row, **{name: row[column] for name, column in columns.items() if column}}
    if row.get("id") in (None, ""):
        row = {**row, "id": f"{PurePosixPath(file).name.partition('.')[0]}/{number}"}
    row = {**row, "id": str(row["id"])}
    if row.get("answer") in (None, "") and row.get("solution"):
        return published.math(row, file, number)
    try:
        return published.gsm8k(row, file, number)
    except ValueError:
        return published.math(row, file, number)


def _checked(entry: Benchmark, row: Row, file: str, number: int) -> Row:
    text = "".join(map(str, row.values()))
    text.encode()  # halves of surrogate pairs are in no event
    if len(text) > LONGEST:
        raise ValueError(f"it has {len(text):,} characters, and {LONGEST:,} are the most")
    converted = entry.convert(row, file, number)
    id_ = row.get("id") if entry.name in _KEEPS_ID else None
    return converted if id_ in (None, "") else {**converted, "id": str(id_)}


def _task(item: Item, domain: str) -> Task:
    problem, level = item.problem, item.facts.get("level", "")
    row = SourceRow(
        id=item.id,
        answer=item.reference if problem else item.gold,
        tests=problem.test if problem else "",
        entry=problem.entry if problem else "",
    )
    return Task(
        question=item.question,
        domain=domain,
        family=QUESTIONS,
        level=int(level) if level.isdecimal() else 1,
        canonical=f"{QUESTIONS} {normal(item.question)}",
        row=row,
    )


def heldout_share(config: RunConfig, n: int) -> int:
    """How many of ``n`` held-out items are rows of the file."""
    return round(n * config.questions.share) if config.questions.file else 0


def heldout_rows(file: QuestionFile, plan: QuestionsConfig, split: Split, n: int, seed: int) -> tuple[Task, ...]:
    """Draw ``n`` rows of ``split`` with ``seed``.

    Raises:
        ValueError: there are not so many. Otherwise as ``questions``.
    """
    rows = questions(file, plan).tasks[split] if n else ()
    return tuple(random.Random(f"questions {split} {seed}").sample(rows, n))


def begun(file: QuestionFile, config: RunConfig, typed: Collection[str]) -> RunConfig:
    """Fill in what ``run.questions`` leaves open, and make the held-out sets no larger than the file has rows for.
    ``typed`` are dotted keys of what a person set for this run.

    Raises:
        ConfigError: a held-out set that was typed is larger, or there are no rows for training or validation.
        Otherwise as ``questions``.
    """
    rows = file.read(config.questions)
    plan = config.questions.model_copy(update={"sha256": rows.sha256})
    read = _read(rows, plan)
    sizes = {split: len(tasks) for split, tasks in read.tasks.items()}
    if not sizes["train"] or not sizes["validation"]:
        why = f"{sizes['train']} of {sum(sizes.values())} are for training, {sizes['validation']} for validation: "
        why += "a question's text decides, 8 in 100 each for validation and test."
        raise ConfigError(f"{rows.name} has too few rows.", why, "Add rows.")
    config = config.model_copy(update={"questions": plan.model_copy(update={"domain": read.domain})})
    fitting: dict[str, int] = {}
    for split in ("validation", "test"):
        size = getattr(config.evaluation, split)
        fitting[split] = _fitting(config, size, sizes[split])
        if fitting[split] < size and f"run.evaluation.{split}" in typed:
            why = f"{rows.name} holds out {sizes[split]} rows for it."
            raise ConfigError(f"run.evaluation.{split} = {size} does not fit.", why, f"Set it to {fitting[split]}.")
    return config.model_copy(update={"evaluation": config.evaluation.model_copy(update=fitting)})


def _fitting(config: RunConfig, size: int, rows: int) -> int:
    """The largest held-out set of at most ``size`` items of which ``rows`` are enough."""
    most = min(size, int((rows + 1) / config.questions.share))
    return next(n for n in range(most, -1, -1) if heldout_share(config, n) <= rows)
