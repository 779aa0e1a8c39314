"""Part of the rim: batches that came with a request. A server answers them beside its requests, one after the other."""

import asyncio
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent0.assembly.batches.batch_files import survey
from agent0.assembly.batches.batch_plan import COLUMNS, BatchListener, BatchPlan, begin
from agent0.assembly.batches.batch_run import answer_batch
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.models.students import adapter_of, present_student
from agent0.errors import Agent0Error
from agent0.events.base import sha256
from agent0.events.submissions import BatchRunStarted
from agent0.infra.storage.files import whole_file
from agent0.projections.base import Row
from agent0.projections.runs import show_run
from agent0.settings import RunConfig, Settings

FOLDER = "batches"
PRIVATE = 0o700


@dataclass(frozen=True)
class BatchSubmission:
    """What a person asks: rows with a column ``question``, and of whom: RUN (its student of now), RUN/CHECKPOINT or a
    digest; empty: the student of the server's settings. ``tools``: whether it may call its tools."""

    rows: Sequence[Mapping[str, object]]
    model: str = ""
    tools: bool = True
    temperature: float = 0.0


@dataclass(frozen=True)
class SubmittedBatch:
    """A batch that may begin: its id, its beginning, and the settings that it is answered under."""

    id: str
    began: BatchRunStarted
    settings: Settings


def submitted_batch(db: sqlite3.Connection, settings: Settings, submission: BatchSubmission) -> SubmittedBatch:
    """Write the rows of ``submission`` into the data folder, and return their batch: the same rows for the same student
    are the same batch.

    Raises:
        ConfigError: no row can be asked. NotFoundError: no such student, or its weights are gone.
        OperationError: a teacher's.
    """
    run, adapter, checkpoint = settings.run, None, "base"
    if submission.model:
        source, row = present_student(db, submission.model)
        checkpoint = f"{source}/{row['checkpoint']}"
        run = RunConfig.recorded(show_run(db, source)["config"])
        adapter = adapter_of(artifact_store(settings), checkpoint, row)
    if not submission.tools:
        run = run.model_copy(update={"student": run.student.model_copy(update={"tools": ()})})
    settings = settings.model_copy(update={"run": run})
    text = "".join(json.dumps(row) + "\n" for row in submission.rows)
    folder = settings.home / FOLDER
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    questions = folder / f"{sha256(text)[:24]}.questions.jsonl"
    _write(questions, text)
    surveyed = survey(questions, COLUMNS, 0)
    student = f"{checkpoint} {submission.temperature} {run.student.model_dump_json()}"
    out = folder / f"{sha256(text + student)[:24]}.answers.jsonl"
    plan = BatchPlan(questions, out, temperature=submission.temperature, adapter=adapter, checkpoint=checkpoint)
    batch, began = begin(settings, plan, surveyed)
    return SubmittedBatch(batch, began, settings)


def _write(path: Path, text: str) -> None:
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


class ServedBatches:
    """The batches that one server answers. What is under way when it ends goes on when the same rows come again."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._states: dict[str, Row] = {}

    def begin(self, batch: SubmittedBatch) -> None:
        """Answer ``batch`` behind those that came before; nothing, where it is under way."""
        if batch.id in self._tasks:
            return
        self._states[batch.id] = {"state": "waiting", "problem": ""}
        self._tasks[batch.id] = asyncio.create_task(self._answer(batch), name=batch.id)

    def state(self, batch: str) -> Row | None:
        """How a batch stands here: waiting, answering, done or failed, and its ``problem``: why it failed, or what it
        waits for. None: it did not come."""
        return self._states.get(batch)

    async def close(self) -> None:
        """Stop what is under way; what is answered is kept."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _answer(self, batch: SubmittedBatch) -> None:
        problem = "It was stopped, or Agent0 made a mistake: see the server's log."
        try:
            async with self._turn:
                self._states[batch.id] = state = {"state": "answering", "problem": ""}
                listener = BatchListener(say=lambda notice: state.update(problem=notice))
                await answer_batch(batch.settings, batch.id, batch.began, listener)
                problem = ""
        except* Agent0Error as errors:
            problem = str(_first(errors))
        finally:
            del self._tasks[batch.id]
            self._states[batch.id] = {"state": "failed" if problem else "done", "problem": problem}


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
