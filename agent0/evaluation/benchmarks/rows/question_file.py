"""The tasks in a file of questions, by split: rows with answers as GSM8K, MATH, SVAMP and MBPP are published, or with
columns of their own."""

import json
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks.rows import RowError
from agent0.evaluation.benchmarks.rows.mined_rows import read_mined_rows
from agent0.evaluation.benchmarks.rows.question_rows import (
    QuestionRows,
    Repetition,
    RowTask,
    conflict_of,
    read_question_rows,
)
from agent0.events.episodes import STEPS
from agent0.events.values import JUDGED, Split, Task
from agent0.ports.storage import Dataset, QuestionFile
from agent0.rewards import AGENT0, set_of_domain
from agent0.settings import QuestionsConfig, RewardConfig, RunConfig, StudentConfig
from agent0.tasks.near_copies import near_copies
from agent0.tasks.splits import VALIDATION_PERCENT, half_of, percentile_of, split_of

FOLDER_TOOLS = ("read_file", "edit_file", "write_file", "shell", "python", "run_tests")
"""Tools with which a student works on files, by default."""
WRITING = frozenset({"edit_file", "write_file", "shell"})
CHECK = "agent0 questions check"
"""The command that names every row that is at fault."""


@dataclass(frozen=True)
class QuestionSet:
    """The rows of a file, of ``heldout`` where the held-out ones have a file of their own, and by split those that can
    be asked, in their order. ``copies`` are rows that nearly copy a held-out one, and are not trained on, unless most
    rows of the file do so (``of_template``). ``conflicts`` are faults between both files."""

    rows: QuestionRows
    entries: Mapping[Split, tuple[RowTask, ...]]
    heldout: QuestionRows | None = None
    copies: tuple[Repetition, ...] = ()
    conflicts: tuple[RowError, ...] = ()
    of_template: bool = False

    @cached_property
    def tasks(self) -> Mapping[Split, tuple[Task, ...]]:
        """The tasks by split."""
        return {split: tuple(entry.task for entry in entries) for split, entries in self.entries.items()}

    @property
    def mined(self) -> bool:
        """Whether any row asks to change a repository."""
        return any(entry.row.repository for entries in self.entries.values() for entry in entries)

    @property
    def over_steps(self) -> bool:
        """Whether any row is an episode over steps."""
        return any(entry.task.domain == STEPS for entries in self.entries.values() for entry in entries)

    @property
    def domain(self) -> str:
        """Whose prompts the student gets at rows without a domain of their own."""
        if self.mined:
            return min(entry.task.domain for entry in self.rows.tasks)
        return "code" if any(entry.row.tests for entry in self.rows.tasks) else "math"

    @property
    def faults(self) -> tuple[RowError, ...]:
        """What must be mended before a run."""
        return (*self.rows.faults, *(self.heldout.faults if self.heldout else ()), *self.conflicts)

    @property
    def duplicates(self) -> tuple[Repetition, ...]:
        """Rows that repeat an earlier one of their file."""
        return (*self.rows.duplicates, *(self.heldout.duplicates if self.heldout else ()))


def questions(file: QuestionFile, plan: QuestionsConfig) -> QuestionSet:
    """Read the tasks of the files that ``plan`` names. A question's normalised text decides its split.

    Raises:
        ConfigError: no row, one that is none, without an answer, with the id of another, or with its question and
            another answer; the first is named by file and line.
        DependencyError: a file is not there, or not the one that the run began with.
    """
    return _without_faults(read_questions(file, plan))


def read_questions(file: QuestionFile, plan: QuestionsConfig) -> QuestionSet:
    """Read the tasks of the files that ``plan`` names, whatever is at fault with some rows.

    Raises:
        ConfigError: there is no row, or ``plan`` names columns that cannot be.
        DependencyError: as ``questions``.
    """
    heldout = file.read(plan.of_heldout) if plan.heldout else None
    return _read(file.read(plan) if plan.file else None, heldout, plan.model_dump_json())


@lru_cache(maxsize=4)  # every request asks for it
def _read(rows: Dataset | None, heldout: Dataset | None, plan: str) -> QuestionSet:
    config = QuestionsConfig.model_validate_json(plan)
    if rows is None:
        assert heldout is not None  # noqa: S101 - one of both files is read
        read = _rows(heldout, config)
        return QuestionSet(read, _by_split(read.tasks, half_of))
    read = _rows(rows, config)
    if heldout is not None:
        return _apart(read, _rows(heldout, config))
    entries = _with_validation(_by_split(read.tasks, split_of))
    copies = _copies(entries["train"], [*entries["validation"], *entries["test"]])
    train = _others(entries["train"], copies)
    of_template = len(copies) > len(train)
    by_split = entries if of_template else {**entries, "train": train}
    return QuestionSet(read, by_split, copies=_repetitions(copies), of_template=of_template)


def _rows(rows: Dataset, plan: QuestionsConfig) -> QuestionRows:
    return read_mined_rows(rows, plan) if rows.mined else read_question_rows(rows, plan)


def _key(entry: RowTask) -> str:
    """What decides a row's split: its question, or the package that it asks to change."""
    return f"package {entry.row.repository.package}" if entry.row.repository else entry.task.canonical


def _by_split(entries: Sequence[RowTask], split: Callable[[str], Split]) -> dict[Split, tuple[RowTask, ...]]:
    by_split: dict[Split, list[RowTask]] = {"train": [], "validation": [], "test": []}
    for entry in entries:
        by_split[split(_key(entry))].append(entry)
    return {name: tuple(of_split) for name, of_split in by_split.items()}


def _with_validation(entries: dict[Split, tuple[RowTask, ...]]) -> dict[Split, tuple[RowTask, ...]]:
    """``entries`` with rows for validation where a small file has none: those for training that its rule comes to
    next, of a package all."""
    train = sorted(entries["train"], key=lambda entry: (percentile_of(_key(entry)), _key(entry)))
    if entries["validation"] or len({_key(entry) for entry in train}) < 2:
        return entries
    count = max(1, round(len(train) * VALIDATION_PERCENT / 100))
    chosen = {_key(entry) for entry in train[:count]} - {_key(train[-1])}
    validation = tuple(entry for entry in train if _key(entry) in chosen)
    others = tuple(entry for entry in entries["train"] if _key(entry) not in chosen)
    return {**entries, "train": others, "validation": validation}


def _apart(read: QuestionRows, heldout: QuestionRows) -> QuestionSet:
    """Both files, without the rows for training that a row of ``heldout`` nearly is."""
    copies = _copies(read.tasks, heldout.tasks)
    same = ((entry, other) for entry, other, _ in copies if entry.task.canonical == other.task.canonical)
    conflicts = [conflict for entry, other in same if (conflict := conflict_of(entry, other))]
    if read.tasks and heldout.tasks and bool((first := heldout.tasks[0]).row.tests) != bool(read.tasks[0].row.tests):
        why = "Of one file the rows have tests, of the other none."
        conflicts.append(RowError(first.location, "tests", "its questions are of another kind.", why))
    entries = _by_split(heldout.tasks, half_of) | {"train": _others(read.tasks, copies)}
    return QuestionSet(read, entries, heldout, _repetitions(copies), tuple(conflicts))


def _copies(train: Sequence[RowTask], heldout: Sequence[RowTask]) -> list[tuple[RowTask, RowTask, float]]:
    """The rows of ``train`` that nearly copy one of ``heldout``, each with that one and their similarity: those of its
    package, where they ask to change one; of episodes that run here none."""
    if any(entry.row.repository or (entry.row.episode and entry.row.episode.program) for entry in train):
        first = {_key(entry): entry for entry in reversed(heldout)}
        return [(entry, first[_key(entry)], 1.0) for entry in train if _key(entry) in first]
    nearest = near_copies([entry.task.question for entry in train], [entry.task.question for entry in heldout])
    pairs = zip(train, nearest, strict=True)
    return [(entry, heldout[copy.reference], round(copy.similarity, 3)) for entry, copy in pairs if copy]


def _others(train: Sequence[RowTask], copies: Sequence[tuple[RowTask, RowTask, float]]) -> tuple[RowTask, ...]:
    locations = {entry.location for entry, _, _ in copies}
    return tuple(entry for entry in train if entry.location not in locations)


def _repetitions(copies: Sequence[tuple[RowTask, RowTask, float]]) -> tuple[Repetition, ...]:
    return tuple(Repetition(entry.location, other.location, similarity) for entry, other, similarity in copies)


def _without_faults(read: QuestionSet) -> QuestionSet:
    if faults := read.faults:
        others = f" {len(faults) - 1} other rows are at fault, too." if len(faults) > 1 else ""
        first = faults[0]
        raise ConfigError(first.what, f"{first.why}{others}", f"{CHECK} FILE" if others else first.fix) from first
    return read


def heldout_share(config: RunConfig, n: int) -> int:
    """How many of ``n`` held-out items are rows of the file."""
    return round(n * _share(config))


def _share(config: RunConfig) -> float:
    """The share of held-out items that are rows: all, where only these have a file."""
    return config.questions.share if config.questions.file else float(bool(config.questions.heldout))


def heldout_rows(file: QuestionFile, plan: QuestionsConfig, split: Split, n: int, seed: int) -> tuple[Task, ...]:
    """Draw ``n`` rows of ``split`` with ``seed``.

    Raises:
        ValueError: there are not so many. Otherwise as ``questions``.
    """
    rows = questions(file, plan).tasks[split] if n else ()
    return tuple(random.Random(f"questions {split} {seed}").sample(rows, n))


def begun(file: QuestionFile, config: RunConfig, typed: Collection[str]) -> RunConfig:
    """Fill in what ``run.questions`` leaves open, choose the reward set of a folder's domain, make the held-out sets
    no larger than the file has rows for. ``typed`` are dotted keys of what a person set for this run.

    Raises:
        ConfigError: a held-out set that was typed is larger, or there are no rows for training or validation.
        Otherwise as ``questions``.
    """
    plan = _with_digests(file, config.questions)
    read = questions(file, plan)
    sizes = {split: len(tasks) for split, tasks in read.tasks.items()}
    if not config.verification.judge.provider and (judged := _judged(read)):
        why = f"{judged} answers are to be judged by a model, and none is named."
        raise ConfigError(f"{read.rows.name} needs a judge.", why, "Name one: --judge MODEL")
    source = (read.heldout or read.rows).name
    if not (sizes["train"] or not plan.file) or not sizes["validation"]:
        raise _too_few(read, sizes)
    config = config.model_copy(update={"questions": plan.model_copy(update={"domain": plan.domain or read.domain})})
    if read.mined:
        config = config.model_copy(update={"rewards": _rewards(read, config.rewards, typed)})
        student = folder_student(config.student, typed="run.student.tools" in typed)
        config = config.model_copy(update={"student": student})
    fitting: dict[str, int] = {}
    for split in ("validation", "test"):
        size = getattr(config.evaluation, split)
        fitting[split] = _fitting(config, size, sizes[split])
        if fitting[split] < size and f"run.evaluation.{split}" in typed:
            why = f"{source} holds out {sizes[split]} rows for it."
            raise ConfigError(f"run.evaluation.{split} = {size} does not fit.", why, f"Set it to {fitting[split]}.")
    return config.model_copy(update={"evaluation": config.evaluation.model_copy(update=fitting)})


def _rewards(read: QuestionSet, rewards: RewardConfig, typed: Collection[str]) -> RewardConfig:
    """``rewards`` with the set of the domain that all tasks are of, unless a person named one."""
    domains = {entry.task.domain for entry in read.rows.tasks}
    if len(domains) > 1 or rewards.set != AGENT0 or "run.rewards.set" in typed:
        return rewards
    return rewards.model_copy(update={"set": set_of_domain(*domains)})


def folder_student(student: StudentConfig, *, typed: bool) -> StudentConfig:
    """Give ``student`` tools that work on files, where none that it has writes one; ``typed``: a person named those.

    Raises:
        ConfigError: a person named the tools, or it may call none.
    """
    if not WRITING.isdisjoint(student.tools) and student.max_calls:
        return student
    if typed or not student.max_calls:
        raise without_writing(student.tools)
    return student.model_copy(update={"tools": FOLDER_TOOLS})


def without_writing(tools: Sequence[str]) -> ConfigError:
    """Make the error of a student that has only ``tools`` where work folders are to be changed."""
    fix = f"--set 'run.student.tools={json.dumps(FOLDER_TOOLS)}'"
    return ConfigError("Mined tasks need tools that write files.", f"It has {', '.join(tools) or 'none'}.", fix)


def _judged(read: QuestionSet) -> int:
    return sum(task.row is not None and task.row.kind == JUDGED for tasks in read.tasks.values() for task in tasks)


def _too_few(read: QuestionSet, sizes: Mapping[Split, int]) -> ConfigError:
    source = read.heldout if read.heldout and sizes["train"] else read.rows
    copies = f"{len(read.copies)} repeat a held-out row, " if read.copies else ""
    counts = f"{sizes['train']} of {sum(sizes.values())} are for training, {sizes['validation']} for validation"
    rule = "of a held-out file half for test" if read.heldout else "8 in 100 each for validation and test"
    what, fix = ("its package", "Mine another package.") if read.mined else ("a question's text", "Add rows.")
    why = f"{copies}{counts}: {what} decides, {rule}."
    return ConfigError(f"{source.name} has too few rows.", why, fix)


def _with_digests(file: QuestionFile, plan: QuestionsConfig) -> QuestionsConfig:
    digests = {"sha256": file.read(plan).sha256} if plan.file else {}
    if plan.heldout:
        digests["heldout_sha256"] = file.read(plan.of_heldout).sha256
    return plan.model_copy(update=digests)


def _fitting(config: RunConfig, size: int, rows: int) -> int:
    """The largest held-out set of at most ``size`` items of which ``rows`` are enough."""
    most = min(size, int((rows + 1) / _share(config)))
    return next(n for n in range(most, -1, -1) if heldout_share(config, n) <= rows)
