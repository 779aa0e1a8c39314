"""Part of the rim: a student answers a file of questions. Each answer is an event before it is a line of the file of
answers, so a batch that was killed goes on where it was: what is answered is never asked again, and the file is written
from the log."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from agent0.assembly.batches.batch_files import AnswersFile, opened_answers, read_rows
from agent0.assembly.batches.batch_plan import (
    SILENT,
    BatchListener,
    BatchOutcome,
    BatchTally,
    Forecast,
    beginning,
    resume_command,
)
from agent0.assembly.evaluation.server_wait import ServerWait
from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.models.student_conditions import open_conditions
from agent0.assembly.routing.billing import check_routing, spent_usd
from agent0.assembly.runtime.stamping import recorded
from agent0.assembly.tooling.tool_policy import with_policy
from agent0.errors import OperationError, TransientError
from agent0.events.base import Recorded, effect_id
from agent0.events.submissions import BatchRunFinished, BatchRunStarted, RowAnswered
from agent0.events.values import Conversation, Task, Usage
from agent0.infra.log.event_log import Log
from agent0.rollout.attempt_events import conversation_fields
from agent0.rollout.prompts import Prompt
from agent0.rollout.student import solve, student_prompt
from agent0.rollout.workspace_store import Scratch
from agent0.settings import Settings, StudentConfig
from agent0.tasks.batch_rows import BatchColumns, BatchRow
from agent0.tasks.seeds import derive_seed

SAMPLE = 20
"""Rows that are answered before the forecast."""
AT_ONCE = 128
"""Rows that are asked together."""


async def answer_batch(
    settings: Settings, batch: str, began: BatchRunStarted, listener: BatchListener = SILENT
) -> BatchOutcome:
    """Answer the rows of ``batch`` that have no answer yet, and write all of them into its file.

    Raises:
        ConfigError: its file of answers holds something else, or another process writes it.
        OperationError: none of the first rows could be answered; nothing is recorded of them.
        DependencyError: its model is not there, a budget is used up, or the disk is full; what is answered is kept.
    """
    settings = await with_policy(settings)
    check_routing(settings)
    start = time.monotonic()
    async with AsyncExitStack() as stack:
        answers = stack.enter_context(opened_answers(Path(began.out), batch))
        log = await stack.enter_async_context(open_log(settings, make=True))
        begun = await beginning(log, batch)
        work = _BatchWork(settings, batch, begun or began, listener, log, answers, begun is not None)
        await work.catch_up()
        stopped = work.tally.done < began.rows and not await work.answer_rest(stack)
        if not stopped:
            await work.finish()
        return BatchOutcome(batch, began.out, work.tally, await work.cost(), time.monotonic() - start, stopped)


@dataclass
class _BatchWork:
    """One batch while a process answers it. ``_stored`` are answers in the log that stand behind a row without one:
    never more than may be asked ahead."""

    settings: Settings
    batch: str
    began: BatchRunStarted
    listener: BatchListener
    log: Log
    answers: AnswersFile
    has_begun: bool
    _stored: dict[int, RowAnswered] = field(default_factory=dict)
    _failures: list[tuple[BatchRow, RowAnswered]] = field(default_factory=list)
    """Of rows that were asked before any was answered: perhaps no row can be."""

    def __post_init__(self) -> None:
        self._saving, self._unsaved = asyncio.Lock(), list[tuple[BatchRow, RowAnswered]]()
        began = self.began
        self.tally = BatchTally(began.rows)
        columns = BatchColumns(began.question, began.id)
        self._rows = read_rows(Path(began.source), columns, began.rows, self.answers.written)
        self._artifacts = artifact_store(self.settings)
        self._answering = False
        """Whether any row was ever answered."""

    async def catch_up(self) -> None:
        """Write what the log has and the file has not: both were written in nearly the same order."""
        async for stored in self.log.read(self.batch, [RowAnswered.__name__]):
            if not isinstance(stored.event, RowAnswered):
                continue
            self.tally.count(stored.event)
            if stored.event.row > self.answers.written:
                self._stored[stored.event.row] = stored.event
            while (answer := self._stored.pop(self.answers.written + 1, None)) is not None:
                self._write(next(self._rows), answer)
        self._answering = self.tally.answered + self.tally.unanswered > 0

    async def answer_rest(self, stack: AsyncExitStack) -> bool:
        """Answer the rows that are left; False where the forecast is declined."""
        actor = StudentConfig.model_validate(self.began.actor).in_rollouts()
        say = self.listener.say
        conditions = await open_conditions(self.settings, actor, self.began.adapter, self.batch, stack, say, self.log)
        if not self.has_begun:
            settled = {**self.began.actor, "tool_form": conditions.config.tool_form}
            await self.log.append([recorded(self.batch, self.began.model_copy(update={"actor": settled}))])
        self._conditions = replace(conditions, temperature=self.began.temperature)
        self._prompt: Prompt = student_prompt(conditions.config, self.began.domain)
        limit_s, command = self.settings.run.give_up_after, resume_command(self.batch)
        self._wait = ServerWait(say, self.batch, command, answered=bool(self.tally.done), give_up_after_s=limit_s)
        if self.tally.done < SAMPLE < self.tally.all and not await self._sample():
            return False
        await self._ask(AT_ONCE)
        for row, failure in self._failures:
            await self._store(row, failure)
        return True

    async def _sample(self) -> bool:
        """Answer the first rows, one of them alone, since models are loaded for it; whether to go on."""
        before = replace(self.tally)
        await self._ask(1, 1)
        start = time.monotonic()
        await self._ask(AT_ONCE, SAMPLE - 1)
        seconds, tally = time.monotonic() - start, self.tally
        left, sample = tally.all - tally.done, tally.done - before.done
        if not left or not sample:
            return True
        scale, spent = left / sample, await self.cost()
        forecast = Forecast(
            sample,
            left,
            seconds * left / max(sample - 1, 1),
            round((tally.read - before.read) * scale),
            round((tally.written - before.written) * scale),
            None if spent is None else spent * left / tally.done,
        )
        return await self.listener.accepts(forecast)

    async def _ask(self, at_once: int, most: int = 0) -> None:
        """Ask the next ``most`` rows that can be (0: all), ``at_once`` together."""
        rows = self._unanswered(most)
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(self._take(rows))

    def _unanswered(self, most: int) -> Iterator[BatchRow]:
        for row in self._rows:
            if (answer := self._stored.pop(row.number, None)) is not None:
                self._write(row, answer)
                continue
            yield row
            most -= not row.problem
            if not most:
                return

    async def _take(self, rows: Iterator[BatchRow]) -> None:
        """Answer rows until none is left; several tasks share ``rows``."""
        for row in rows:
            await self.answers.room(row.number)
            if row.problem:
                await self._store(row, RowAnswered(row=row.number, error=row.problem))
                continue
            answer = await self._answer(row)
            if answer.error and not self._answering:
                self._defer(row, answer)
                continue
            self._answering = True
            await self._store(row, answer)

    def _defer(self, row: BatchRow, failure: RowAnswered) -> None:
        """Keep a failure back until a row is answered.

        Raises:
            OperationError: none of the first ``SAMPLE`` rows was.
        """
        self._failures.append((row, failure))
        if len(self._failures) == SAMPLE:
            why = f"Row {row.number}: {failure.error}"
            fix = f"Nothing of them is recorded. Mend it, then: {resume_command(self.batch)}"
            raise OperationError(f"None of the first {SAMPLE} rows was answered.", why, fix)

    async def _answer(self, row: BatchRow) -> RowAnswered:
        """Let the student answer; what fails for this row alone is its answer's error."""
        conditions = replace(
            self._conditions,
            artifacts=Scratch(),
            seed=derive_seed(self.began.seed, "row", row.number),
            attempt=RowAnswered(row=row.number).item,
        )
        task = Task(question=str(row.question), domain=self.began.domain, family="open", level=1, canonical="")
        try:
            solved = await self._wait.through(partial(solve, task, self._prompt, conditions))
        except (OperationError, TransientError) as error:
            return RowAnswered(row=row.number, error=f"row {row.number}: {error}"[:2000])
        return RowAnswered(
            row=row.number,
            answer=solved.answer,
            **conversation_fields(solved, self._artifacts),
            usage=solved.usage,
            wall_s=solved.wall_s,
            model=solved.model,
            authors=solved.authors,
        )

    async def _store(self, row: BatchRow, answer: RowAnswered) -> None:
        """Into the log, then into the file; what is to be stored while the disk is busy is stored together."""
        self._unsaved.append((row, answer))
        async with self._saving:
            answers, self._unsaved = self._unsaved, []
            await self.log.append([self._event(row, answer) for row, answer in answers])
            for saved_row, saved in answers:
                self.tally.count(saved)
                self._write(saved_row, saved)
                self.listener.report(self.tally)

    def _event(self, row: BatchRow, answer: RowAnswered) -> Recorded:
        """Under an id that the same row has whenever it is answered."""
        return recorded(self.batch, answer).model_copy(update={"id": effect_id(self.batch, "row", row.number)})

    def _write(self, row: BatchRow, answer: RowAnswered) -> None:
        self.answers.add(row.number, answer_line(self.batch, row, answer, self._conversation(answer)))

    def _conversation(self, answer: RowAnswered) -> Conversation:
        if answer.conversation_artifact:
            return Conversation.model_validate_json(self._artifacts.get(answer.conversation_artifact))
        return answer.conversation or Conversation()

    async def finish(self) -> None:
        """Record once that all rows are done."""
        tally = self.tally
        finished = BatchRunFinished(
            rows=tally.all, answered=tally.answered, unanswered=tally.unanswered, failed=tally.failed
        )
        event = recorded(self.batch, finished).model_copy(update={"id": effect_id(self.batch, "finished", 0)})
        if not [stored async for stored in self.log.read(self.batch, [BatchRunFinished.__name__])]:
            await self.log.append([event])

    async def cost(self) -> float | None:
        """US dollars so far: what budgets were charged, else tokens at the student's price; None without a price."""
        actor = StudentConfig.model_validate(self.began.actor)
        usage = Usage(prompt_tokens=self.tally.read, completion_tokens=self.tally.written)
        return await spent_usd(self.settings, self.log, self.batch, actor, usage)


def answer_line(batch: str, row: BatchRow, answer: RowAnswered, conversation: Conversation) -> dict[str, object]:
    """Return a row of the file of answers."""
    replies = [turn.content for turn in conversation.transcript if turn.role == "assistant"]
    return {
        "batch": batch,
        "row": row.number,
        "id": row.id,
        "question": row.question,
        "answer": answer.answer,
        "reply": replies[-1] if replies and answer.turns else None,
        "finish": answer.end or "failed",
        "error": answer.error or None,
        "tokens": {"read": answer.usage.prompt_tokens, "written": answer.usage.completion_tokens},
        "tool_calls": answer.tool_calls,
        "model": answer.model or None,
        "transcript": answer.item if answer.end else None,
    }
