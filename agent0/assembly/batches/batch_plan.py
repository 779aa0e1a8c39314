"""Part of the rim: what a batch of questions is to be, what it comes to, and who hears of it."""

import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agent0.assembly.batches.batch_files import Survey
from agent0.assembly.log.access import open_log
from agent0.errors import ConfigError, NotFoundError
from agent0.events.base import sha256
from agent0.events.submissions import BatchRunStarted, RowAnswered
from agent0.events.values import Artifact
from agent0.infra.log.event_log import Log
from agent0.settings import Settings, StudentConfig
from agent0.tasks.batch_rows import BatchColumns

COLUMNS = BatchColumns()
"""The columns that are read unless others are named."""


@dataclass(frozen=True)
class BatchPlan:
    """What is to be answered, and how: rows of ``source`` into ``out``, at ``temperature`` (0: greedily)."""

    source: Path
    out: Path
    columns: BatchColumns = COLUMNS
    temperature: float = 0.0
    adapter: Artifact | None = None
    checkpoint: str = "base"


@dataclass
class BatchTally:
    """What the rows of a batch came to so far. ``tokens`` read and written."""

    all: int
    answered: int = 0
    unanswered: int = 0
    failed: int = 0
    read: int = 0
    written: int = 0

    @property
    def done(self) -> int:
        """Rows that nothing more is to be done for."""
        return self.answered + self.unanswered + self.failed

    def count(self, row: RowAnswered) -> None:
        """Take ``row`` in."""
        self.failed += bool(row.error)
        self.answered += row.answer is not None
        self.unanswered += row.answer is None and not row.error
        self.read += row.usage.prompt_tokens
        self.written += row.usage.completion_tokens


@dataclass(frozen=True)
class Forecast:
    """What the ``rows`` that are left will come to, if they are like the ``sample`` that is answered. ``usd`` None:
    a price is not known."""

    sample: int
    rows: int
    seconds: float
    read: int
    written: int
    usd: float | None


@dataclass(frozen=True)
class BatchOutcome:
    """What a batch came to. ``usd`` None: a price is not known. ``stopped``: the forecast was declined."""

    batch: str
    out: str
    tally: BatchTally
    usd: float | None
    seconds: float
    stopped: bool = False


async def _go_on(_: Forecast) -> bool:
    return True


class BatchListener(NamedTuple):
    """Who hears of a batch: notices, each row that is done, and the forecast, which it may decline."""

    say: Callable[[str], object] = lambda _: None
    report: Callable[[BatchTally], object] = lambda _: None
    accepts: Callable[[Forecast], Awaitable[bool]] = _go_on


SILENT = BatchListener()


def resume_command(batch: str) -> str:
    """Return the command that goes on with ``batch``."""
    return f"agent0 batch run --resume {shlex.quote(batch)}"


def begin(settings: Settings, plan: BatchPlan, surveyed: Survey) -> tuple[str, BatchRunStarted]:
    """Return the id of a batch and its beginning. The id follows from all that decides its answers and from where they
    are written: the same command has the same one.

    Raises:
        ConfigError: rows share an id.
    """
    if surveyed.repeated:
        why = f"{surveyed.repeats[0][:1].upper()}{'; '.join(surveyed.repeats)[1:]}"
        why += f"; {surveyed.repeated:,} in all." if surveyed.repeated > len(surveyed.repeats) else "."
        fix = "Give each row its own id, or leave ids out: rows are then numbered."
        raise ConfigError("Rows share an id, so their answers would be ambiguous.", why, fix)
    run = settings.run
    began = BatchRunStarted(
        source=str(plan.source.absolute()),
        sha256=surveyed.sha256,
        rows=surveyed.rows,
        out=str(plan.out.absolute()),
        question=plan.columns.question,
        id=plan.columns.id,
        seed=run.seed,
        temperature=plan.temperature,
        domain=run.questions.domain or run.curriculum.domains[0],
        profile=settings.profile,
        actor=run.student.model_dump(mode="json"),
        adapter=plan.adapter,
        checkpoint=plan.checkpoint,
    )
    return f"batch-{sha256(began.model_dump_json())[:10]}", began


async def begun_batch(settings: Settings, batch: str) -> tuple[Settings, BatchRunStarted]:
    """Read how ``batch`` was begun; ``settings`` with its student.

    Raises:
        NotFoundError: it has not begun.
    """
    async with open_log(settings, make=True) as log:
        began = await beginning(log, batch)
    if began is None:
        what = f"There is no batch {batch[:80]!r} to go on with."
        raise NotFoundError(what, fix="See: agent0 batch list")
    student = StudentConfig.model_validate(began.actor)
    run = settings.run.model_copy(update={"student": student})
    return settings.model_copy(update={"run": run, "profile": began.profile}), began


async def beginning(log: Log, batch: str) -> BatchRunStarted | None:
    """Read how ``batch`` was begun; None where it was not."""
    event = await anext((stored.event async for stored in log.read(batch, [BatchRunStarted.__name__])), None)
    return event if isinstance(event, BatchRunStarted) else None
