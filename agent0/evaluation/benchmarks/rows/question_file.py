"""The tasks in a file of questions, by split: rows with answers as GSM8K, MATH, SVAMP and MBPP are published, or with
columns of their own."""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks.rows.question_rows import QuestionRows, RowTask, read_question_rows
from agent0.events.values import Split, Task
from agent0.ports.storage import Dataset, QuestionFile
from agent0.settings import QuestionsConfig, RunConfig
from agent0.tasks.splits import split_of

CHECK = "agent0 questions check"
"""The command that names every row that is at fault."""


@dataclass(frozen=True)
class QuestionSet:
    """The rows of a file, and by split those that can be asked, in its order."""

    rows: QuestionRows
    entries: Mapping[Split, tuple[RowTask, ...]]

    @cached_property
    def tasks(self) -> Mapping[Split, tuple[Task, ...]]:
        """The tasks by split."""
        return {split: tuple(entry.task for entry in entries) for split, entries in self.entries.items()}

    @property
    def domain(self) -> str:
        """Whose prompts the student gets."""
        return next((entry.task.domain for entry in self.rows.tasks), "math")


def questions(file: QuestionFile, plan: QuestionsConfig) -> QuestionSet:
    """Read the tasks of the file that ``plan`` names. A question's normalised text decides its split.

    Raises:
        ConfigError: no row, one that is none, without an answer, with the id of another, or with its question and
            another answer; the first is named by file and line.
        DependencyError: the file is not there, or not the one that the run began with.
    """
    return _without_faults(read_questions(file.read(plan), plan))


def read_questions(rows: Dataset, plan: QuestionsConfig) -> QuestionSet:
    """Read the tasks of ``rows``, whatever is at fault with some of them.

    Raises:
        ConfigError: there is no row, or ``plan`` names columns that cannot be.
    """
    return _read(rows, plan.model_dump_json())


@lru_cache(maxsize=4)  # every request asks for it
def _read(rows: Dataset, plan: str) -> QuestionSet:
    read = read_question_rows(rows, QuestionsConfig.model_validate_json(plan))
    entries: dict[Split, list[RowTask]] = {"train": [], "validation": [], "test": []}
    for entry in read.tasks:
        entries[split_of(entry.task.canonical)].append(entry)
    return QuestionSet(read, {split: tuple(of_split) for split, of_split in entries.items()})


def _without_faults(read: QuestionSet) -> QuestionSet:
    if faults := read.rows.faults:
        others = f" {len(faults) - 1} other rows are at fault, too." if len(faults) > 1 else ""
        first = faults[0]
        raise ConfigError(first.what, f"{first.why}{others}", f"{CHECK} FILE" if others else first.fix) from first
    return read


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
    read = _without_faults(read_questions(rows, plan))
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
