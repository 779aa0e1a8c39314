"""The rows of a file of questions as tasks; what is at fault with others, and which repeat one another."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isinf, isnan

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks import Item, answers, coding, read_item
from agent0.evaluation.benchmarks.rows import Row, RowError, files_in, read_rows
from agent0.evaluation.benchmarks.rows.question_columns import Columns, columns_of
from agent0.events.values import JUDGED, QUESTIONS, SourceRow, Task
from agent0.grading.answer_types import VALUE, grade_as, kind_of
from agent0.grading.tolerance import measured_in
from agent0.ports.storage import SURPLUS, Dataset
from agent0.rollout.teacher import normal
from agent0.settings import QuestionsConfig

LONGEST = 32_768
"""Characters of a task: it is in events, which hold 64 KB."""
TOO_LONG = "Shorten it, or leave it out."
_KEEPS_ID = [entry.name for entry in (coding.MBPP, answers.SVAMP, answers.MATH)]
"""Layouts without a column ``id``: where rows have one all the same, it is theirs."""


@dataclass(frozen=True)
class RowTask:
    """A row as a task, and its line or number in the file."""

    location: str
    task: Task

    @property
    def row(self) -> SourceRow:
        """What decides about answers to it."""
        assert self.task.row is not None  # noqa: S101 - of a file
        return self.task.row


@dataclass(frozen=True, slots=True)
class Repetition:
    """A row that repeats another row's question; ``similarity`` is 1 where it does so word by word."""

    location: str
    repeated: str
    similarity: float = 1.0


@dataclass(frozen=True)
class QuestionRows:
    """The rows of a file. ``tasks`` are those that can be asked, in its order, each question once; ``faults`` say what
    must be mended; ``duplicates`` are rows with question and answer of an earlier one."""

    name: str
    columns: Columns
    count: int
    tasks: tuple[RowTask, ...]
    faults: tuple[RowError, ...]
    duplicates: tuple[Repetition, ...]


def read_question_rows(rows: Dataset, plan: QuestionsConfig) -> QuestionRows:
    """Read every row of a file, in the columns that ``plan`` names.

    Raises:
        ConfigError: there is no row, or ``plan`` names columns that cannot be.
    """
    faults: list[RowError] = []
    fields, count = dict[str, None](), 0
    for _, _, _, row in _numbered(rows, faults):
        fields.update(dict.fromkeys(row))
        count += 1
    count += len(faults)
    if not count:
        raise ConfigError(f"{rows.name} has no rows.", "It is read as JSON objects, one a line or in one list.")
    columns = columns_of(fields, plan)
    tasks, duplicates, conflicts = _once(_entries(rows, columns, plan.domain, faults))
    faults += [*_of_two_sorts(tasks), *_same_ids(tasks), *conflicts]
    faults.sort(key=lambda fault: int(fault.location.rpartition(" ")[2]))
    return QuestionRows(rows.name, columns, count, tuple(tasks), tuple(faults), tuple(duplicates))


def _numbered(rows: Dataset, faults: list[RowError]) -> Iterator[tuple[str, int, str, Row]]:
    """Each row's file, number from 0, location and columns. Read anew each time: a million of them are never held."""
    for name, text in files_in(rows.text, rows.name):
        for number, (location, row) in enumerate(read_rows(text, name, faults)):
            yield name, number, location, row


def _entries(rows: Dataset, columns: Columns, domain: str, faults: list[RowError]) -> Iterator[RowTask]:
    """The rows that can be asked; what is at fault with others is added to ``faults``."""
    for name, number, location, row in _numbered(rows, []):
        try:
            row = _without_nan(row)
            _require_numbers(columns, row, location)
            _require_short(columns, row, location)
            yield _entry(columns, row, name, number, location, domain)
        except RowError as error:
            faults.append(error)


def _without_nan(row: Row) -> Row:
    """``row`` with None for what is no number: so pandas and Parquet write an empty cell."""
    return {column: None if isinstance(value, float) and isnan(value) else value for column, value in row.items()}


def _require_numbers(columns: Columns, row: Row, location: str) -> None:
    """JSON's ``1e400`` is read as infinite, which no answer equals."""
    for column, value in row.items():
        if isinstance(value, float) and isinf(value):
            raise _fault(columns, location, column, "it is infinite, or too large a number", "Write it as text.")


def _require_short(columns: Columns, row: Row, location: str) -> None:
    """A row that no event holds is refused before its texts are read, some of which takes long."""
    texts = {column: row.get(column) for column in (columns.names.values() if columns.names else row)}
    for column, value in texts.items():
        if isinstance(value, str) and len(value) > LONGEST:
            raise _fault(columns, location, column, _length(len(value)), TOO_LONG)


def _length(characters: int) -> str:
    return f"it has {characters:,} characters, and {LONGEST:,} are the most"


def _fault(columns: Columns, location: str, column: str, why: str, fix: str) -> RowError:
    return RowError(location, column, f"no row of {columns.layout.name}.", f"Column {column!r}: {why}.", fix)


def _entry(columns: Columns, row: Row, file: str, number: int, location: str, domain: str) -> RowTask:
    """Raises RowError where the row is none, or is too long for an event."""
    if isinstance(surplus := row.get(SURPLUS), list):
        why = f"Its values {surplus!r:.60} have no column."
        raise RowError(
            location, "", f"no row of {columns.layout.name}.", why, "Is a quote missing, or a column's name?"
        )
    item = read_item(columns.layout, row, file, number, location)
    id_ = row.get("id") if columns.layout.name in _KEEPS_ID else None
    if not normal(item.question):
        column, why = columns.names.get("question", ""), "Its question is empty."
        raise RowError(location, column, f"no row of {columns.layout.name}.", why, "Leave it out.")
    task = _task(item if id_ in (None, "") else replace(item, id=str(id_)), domain)
    assert task.row is not None  # noqa: S101 - it has just been made
    text = "".join((task.question, task.row.id, task.row.answer, task.row.tests))
    if not text.isascii() or "\0" in text:
        _require_whole(columns, row, text, location)
    if len(text) > LONGEST:
        column = max(row, key=lambda name: len(str(row[name])))
        raise _fault(columns, location, column, _length(len(text)), TOO_LONG)
    return RowTask(location, task)


def _require_whole(columns: Columns, row: Row, text: str, location: str) -> None:
    """No event holds a half of a surrogate pair, and no model a NUL."""
    if "\0" in text:
        column = next((name for name, value in row.items() if "\0" in str(value)), "")
        why = f"Column {column!r}: character {str(row[column]).find(chr(0)) + 1:,} is NUL."
        raise RowError(location, column, f"no row of {columns.layout.name}.", why, "Take it out.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        halves = (name for name, value in row.items() if any("\ud800" <= sign <= "\udfff" for sign in str(value)))
        column = next(halves, "")
        raise RowError(location, column, f"no row of {columns.layout.name}.", f"Column {column!r}: {error}.") from error


def _task(item: Item, domain: str) -> Task:
    problem, level = item.problem, item.facts.get("level", "")
    row = SourceRow(
        id=item.id,
        answer=item.reference if problem else item.gold,
        tests=problem.test if problem else "",
        entry=problem.entry if problem else "",
        kind=_kind(item) if not problem else "",
        tolerance=item.facts.get("tolerance", "") if not problem else "",
        tools=tuple(filter(None, item.facts.get("tools", "").split(","))),
    )
    return Task(
        question=item.question,
        domain=item.facts.get("domain") or domain or ("code" if problem else "math"),
        family=QUESTIONS,
        level=int(level) if level.isdecimal() else 1,
        canonical=f"{QUESTIONS} {normal(item.question)}",
        row=row,
    )


def _kind(item: Item) -> str:
    """The kind that the row names; a number or whatever has a kind of its own is never left to a judge's opinion."""
    kind = item.facts.get("kind", "")
    exact = measured_in(item.gold) is not None or kind_of(item.gold) not in (VALUE, "text")
    return "" if kind == JUDGED and exact else kind


def _of_two_sorts(entries: Sequence[RowTask]) -> Iterator[RowError]:
    """Rows without tests in a file of programs: they would be asked with the prompts of another domain."""
    plain = [entry for entry in entries if not entry.row.tests]
    tested = len(entries) - len(plain)
    fewer = plain if tested >= len(plain) else [entry for entry in entries if entry.row.tests]
    for entry in fewer if len(fewer) < len(entries) else ():
        has, others = ("tests", "none") if entry.row.tests else ("no tests", "some")
        why = f"It has {has}, and {len(entries) - len(fewer)} other rows have {others}."
        yield RowError(entry.location, "tests", "no row of this file.", why, "Put such rows into a file of their own.")


def _same_ids(entries: Sequence[RowTask]) -> Iterator[RowError]:
    locations: dict[str, str] = {}
    for entry in entries:
        first = locations.setdefault(entry.row.id, entry.location)
        if first is not entry.location:
            yield RowError(entry.location, "id", f"id {entry.row.id!r} is that of {first.rpartition(', ')[2]}.")


def _once(entries: Iterable[RowTask]) -> tuple[list[RowTask], list[Repetition], list[RowError]]:
    """Each question once, the rows that repeat one, and those that do so with another answer."""
    first: dict[str, RowTask] = {}
    duplicates, conflicts = [], []
    for entry in entries:
        earlier = first.setdefault(entry.task.canonical, entry)
        if earlier is entry:
            continue
        if conflict := conflict_of(entry, earlier):
            conflicts.append(conflict)
        else:
            duplicates.append(Repetition(entry.location, earlier.location))
    return [*first.values()], duplicates, conflicts


def conflict_of(entry: RowTask, earlier: RowTask) -> RowError | None:
    """The fault of a row that has the question of ``earlier`` and another answer, or other tests; None where what
    decides about answers is the same."""
    row, other, location = entry.row, earlier.row, earlier.location.rpartition(", ")[2]
    if row.tests or other.tests:
        if row.tests == other.tests:
            return None
        column, why = "tests", f"Its question is that of {location}, and its tests are others."
    elif row.answer == other.answer or _same_answer(other.kind or row.kind, other.answer, row.answer):
        return None
    else:
        column = "answer"
        why = f"Its question is that of {location}, whose answer is {other.answer[:60]!r}, not {row.answer[:60]!r}."
    return RowError(entry.location, column, "one question has two answers.", why, "Correct one of them, or remove it.")


@lru_cache(maxsize=1024)
def _same_answer(kind: str, expected: str, answer: str) -> bool:
    return grade_as("" if kind == JUDGED else kind, expected, answer).correct is True
