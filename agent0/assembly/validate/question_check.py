"""Part of the rim: what a run would read of a file of questions, and how it would judge ten of its rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.port_openers import open_port
from agent0.assembly.validate.questions import located
from agent0.errors import Agent0Error
from agent0.evaluation.benchmarks.rows.question_file import QuestionSet, read_questions
from agent0.evaluation.benchmarks.rows.question_rows import RowTask
from agent0.grading.answer_types import kind_of
from agent0.infra.storage.datasets import LocalQuestions
from agent0.ports.sandbox import Sandbox
from agent0.projections.base import Row
from agent0.settings import Settings
from agent0.verification.panel import VerificationContext
from agent0.verification.verifiers import verifier_for

SHOWN = 10
"""Rows that are judged, spread over the file."""
PROGRAM = "program"
"""The kind of an answer that is judged by tests."""
FOLDER = "work folder"
"""The kind of an answer to a mined task."""


@dataclass(frozen=True)
class JudgedRow:
    """A row with the verdict of its verifier on its own answer; None where it has none, or that cannot be decided."""

    location: str
    question: str
    answer: str
    kind: str
    verifier: str
    correct: bool | None
    reason: str


@dataclass(frozen=True)
class QuestionCheck:
    """What was read of a file. ``kinds``: how many answers are of each kind; ``tolerances``: how many have one;
    ``faults``: (row, column, what must be mended)."""

    read: QuestionSet
    sha256: str
    kinds: Mapping[str, int]
    tolerances: int
    sample: Sequence[JudgedRow]
    faults: Sequence[tuple[str, str, str]]

    def as_row(self) -> Row:
        """It in values of JSON, as `agent0 questions check --json` prints it."""
        rows = self.read.rows
        return {
            "file": rows.name,
            "sha256": self.sha256,
            "rows": rows.count,
            "layout": rows.columns.layout.name,
            "columns": dict(rows.columns.names),
            "unread": rows.columns.unread,
            "kinds": self.kinds,
            "tolerances": self.tolerances,
            "split": {split: len(entries) for split, entries in self.read.entries.items()},
            "sample": [asdict(row) for row in self.sample],
            "heldout": self.read.heldout.name if self.read.heldout else None,
            "duplicates": [asdict(repetition) for repetition in self.read.duplicates],
            "near_copies": [asdict(repetition) for repetition in self.read.copies],
            "faults": [
                {"location": location, "column": column, "fault": fault} for location, column, fault in self.faults
            ],
        }


async def check_questions(settings: Settings) -> QuestionCheck:
    """Read the file of ``settings.run.questions`` and judge ``SHOWN`` of its rows by their own answers.

    Raises:
        ConfigError: there is no such file, it has no row, or columns are named that cannot be.
        RequirementsError: what reads it is not installed.
    """
    plan = located(settings.run.questions)
    file = LocalQuestions()
    read = read_questions(file, plan)
    entries = read.rows.tasks
    kinds = Counter(kind_of_row(entry) for entry in entries)
    shown = min(SHOWN, len(entries))
    spread = [entries[number * len(entries) // shown] for number in range(shown)]
    sample = await _judged(settings, spread, VerificationContext(artifacts=file.files(plan)))
    return QuestionCheck(
        read,
        file.read(plan).sha256,
        dict(kinds.most_common()),
        sum(bool(entry.row.tolerance) for entry in entries),
        sample,
        [*_faults(read), *(_wrong(row) for row in sample if row.correct is False)],
    )


def kind_of_row(entry: RowTask) -> str:
    """The kind of a row's answer, by which its verifier compares."""
    if entry.row.repository:
        return FOLDER
    return PROGRAM if entry.row.tests else entry.row.kind or kind_of(entry.row.answer)


def _faults(read: QuestionSet) -> list[tuple[str, str, str]]:
    names = read.rows.columns.names
    return [
        (
            fault.location,
            names.get(fault.column, fault.column),
            f"{fault.what.removeprefix(f'{fault.location}: ')} {fault.why}".strip(),
        )
        for fault in read.faults
    ]


def _wrong(row: JudgedRow) -> tuple[str, str, str]:
    return row.location, "tests" if row.kind == PROGRAM else "answer", f"Its own answer is judged wrong: {row.reason}"


async def _judged(settings: Settings, entries: Sequence[RowTask], context: VerificationContext) -> list[JudgedRow]:
    """Rows one after the other: a sandbox has few workers."""
    if not entries:
        return []
    sandbox: Sandbox = await open_port("verifier_sandbox", settings, artifact_store(settings), tested=True)
    try:
        return [await _judge(entry, sandbox, context) for entry in entries]
    finally:
        await sandbox.close()


async def _judge(entry: RowTask, sandbox: Sandbox, context: VerificationContext) -> JudgedRow:
    task, row = entry.task, entry.row
    verifier, correct, reason = verifier_for(task), None, "it has tests, and no program that passes them"
    if row.episode:
        reason = "its environment alone knows"
    elif row.answer:
        try:
            verdict = (await verifier.judge(task, [row.answer], sandbox, context))[0]
            correct, reason = verdict.correct, verdict.reason
        except Agent0Error as error:
            reason = str(error)
    return JudgedRow(entry.location, task.question, row.answer, kind_of_row(entry), verifier.name, correct, reason)
