"""A file of questions, answered by any model, checkpoint or strategy: forecast, progress, exactly once."""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.batches.batch_files import Survey, survey
from agent0.assembly.batches.batch_plan import (
    BatchListener,
    BatchOutcome,
    BatchPlan,
    BatchTally,
    Forecast,
    begin,
    begun_batch,
    resume_command,
)
from agent0.assembly.batches.batch_run import answer_batch
from agent0.cli import console, flags, lookup
from agent0.cli.models.partner import partner
from agent0.cli.routing.evaluate import strategy_pairs
from agent0.errors import ConfigError, DependencyError, RunFailedError
from agent0.events.submissions import BatchRunStarted
from agent0.projections.batches import list_batches
from agent0.settings import Settings
from agent0.tasks.batch_rows import BatchColumns

EVERY_S = 5.0


Source = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="JSON lines: a column question, and id where rows have one.")
]
Answers = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", callback=console.in_folder, help="Answers, in the rows' order."),
]
Partner = Annotated[
    str, typer.Option(help="tiny, a name of the catalogue or a server, folder, GGUF file; RUN/CHECKPOINT, RUN.")
]
StandIns = Annotated[
    list[str] | None, typer.Option("--with", help="provider/model that stands in; may be given again, in order.")
]


def run(
    questions: Source = None,
    out: Answers = None,
    model: Partner = "",
    provider: Annotated[str | None, typer.Option(help="Whose model it is: ollama, openai, transformers…")] = None,
    with_: StandIns = None,
    strategy: Annotated[str, typer.Option(help="Who answers which row: agent0 router strategies.")] = "",
    tools: Annotated[str | None, typer.Option(help="Its tools, comma-separated; else those of the settings.")] = None,
    no_tools: Annotated[bool, typer.Option("--no-tools", help="No tools, and a prompt that names none.")] = False,
    temperature: Annotated[float, typer.Option(min=0, max=100, help="0: always the likeliest token.")] = 0.0,
    question: Annotated[str, typer.Option(help="Column of the question.")] = "question",
    id_: Annotated[str, typer.Option("--id", help="Column of the row's id.")] = "id",
    limit: Annotated[int, typer.Option(min=0, help="The first rows only; 0: all.")] = 0,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Go on behind the forecast without asking.")] = False,
    resume: Annotated[str, typer.Option(help="Id of a batch to go on with; alone it is enough.")] = "",
    profile: console.Profile = None,
    set_: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Answer a file of questions, each row once. Behind 20 rows, time, tokens and cost of the others are forecast.
    Stopped or killed, the same command goes on. A row that fails has an error in the answers, and the exit code is
    then 6."""
    columns, tools = BatchColumns(question, id_), "[]" if no_tools else tools
    if resume:
        settings, batch, began, surveyed = _resumed(resume, profile, set_)
    else:
        source, place = _paths(questions, out)
        pairs = {**flags.overrides([*(set_ or ()), *strategy_pairs(with_, strategy)], run__student__tools=tools)}
        surveyed = survey(source, columns, limit)
        settings, adapter, checkpoint = partner(model, provider, profile, pairs)
        plan = BatchPlan(source, place, columns, temperature, adapter, checkpoint or "base")
        batch, began = begin(settings, plan, surveyed)
    _say_problems(surveyed)
    _show(_answered(settings, batch, began, ask=not yes and not as_json), as_json)


def _paths(questions: Path | None, out: Path | None) -> tuple[Path, Path]:
    """The files that are named.

    Raises:
        ConfigError: one is not.
    """
    if questions is None or out is None:
        what = "No file of questions is named." if questions is None else "No file for the answers is named."
        raise ConfigError(what, "", "agent0 batch run questions.jsonl --out answers.jsonl")
    return questions, out


def _resumed(batch: str, profile: str | None, pairs: list[str] | None) -> tuple[Settings, str, BatchRunStarted, Survey]:
    """A batch as it was begun, and its file as it still is.

    Raises:
        NotFoundError: it was not begun. ConfigError: its file has changed.
    """
    present = flags.settings(profile, pairs)
    settings, began = console.run_async(lambda: begun_batch(present, batch))
    return settings, batch, began, _unchanged(began)


def _unchanged(began: BatchRunStarted) -> Survey:
    """The survey of the file of a batch that is gone on with.

    Raises:
        ConfigError: it has changed.
    """
    surveyed = survey(Path(began.source), BatchColumns(began.question, began.id), began.rows)
    if surveyed.sha256 != began.sha256:
        fix = "Put back what was there, or begin a batch with another --out."
        raise ConfigError(f"{began.source} has changed since the batch began.", "", fix)
    return surveyed


def _say_problems(surveyed: Survey) -> None:
    if surveyed.bad:
        console.say(f"{surveyed.bad:,} of {surveyed.rows:,} rows cannot be asked, and get an error as their answer:")
        for problem in surveyed.problems:
            console.say(f"  {problem}")


def _answered(settings: Settings, batch: str, began: BatchRunStarted, *, ask: bool) -> BatchOutcome:
    """What a batch comes to; how to go on is said where it is stopped."""
    go_on = resume_command(batch)
    console.say(f"Batch {batch}: {began.rows:,} rows; {began.actor['provider']} {began.actor['model']}".rstrip())
    listener = BatchListener(console.say, _BatchReporter(), _accepting(ask=ask))
    try:
        return console.run_async(
            lambda: answer_batch(settings, batch, began, listener), stopping=f"Stopped; nothing is lost. Go on: {go_on}"
        )
    except* DependencyError:
        console.say(f"What is answered is kept. Go on: {go_on}")
        raise


def _accepting(*, ask: bool) -> Callable[[Forecast], Any]:
    """What shows a forecast, and asks where a person can answer."""

    async def accepts(forecast: Forecast) -> bool:
        console.say(forecast_line(forecast))
        return True if not ask or not sys.stdin.isatty() else await _confirmed()

    return accepts


async def _confirmed() -> bool:
    """Whether a person wants to go on; Ctrl-C is heard meanwhile."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()
    typer.echo("Go on? [Y/n] ", nl=False, err=True)

    def read() -> None:
        loop.remove_reader(sys.stdin)
        line.set_result(sys.stdin.readline())

    loop.add_reader(sys.stdin, read)
    try:
        return (await line).strip().lower() in ("", "y", "yes")
    finally:
        loop.remove_reader(sys.stdin)


def forecast_line(forecast: Forecast) -> str:
    """Return a forecast as the line that people read."""
    tokens = f"{forecast.read:,} tokens read, {forecast.written:,} written"
    money = "its price is not known" if forecast.usd is None else f"${forecast.usd:.2f}" if forecast.usd else "no cost"
    return (
        f"Forecast after {forecast.sample} rows: the other {forecast.rows:,} take about {took(forecast.seconds)}; "
        f"{tokens}; {money}."
    )


def took(seconds: float) -> str:
    """Return seconds as people say them: 2.5 min, 30 h."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


class _BatchReporter:
    """A line on stderr every few seconds, with the pace since the last ones and the time left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._start = clock, clock()
        self._last, self._first = self._start, -1

    def __call__(self, tally: BatchTally) -> None:
        moment = self._clock()
        if self._first < 0:
            self._first, self._start = tally.done, moment
        if moment - self._last < EVERY_S:
            return
        self._last = moment
        pace = (tally.done - self._first) / max(moment - self._start, 1e-6)
        failed = f", {tally.failed:,} failed" if tally.failed else ""
        left = f", {pace:.3g} rows/s, {took((tally.all - tally.done) / pace)} left" if pace else ""
        console.say(f"{tally.done:,} of {tally.all:,} rows{failed}{left}")


def _show(outcome: BatchOutcome, as_json: bool) -> None:
    """What a batch came to.

    Raises:
        RunFailedError: rows have an error.
    """
    tally = outcome.tally
    counts = {"rows": tally.all, "answered": tally.answered, "unanswered": tally.unanswered, "failed": tally.failed}
    if as_json:
        tokens = {"read": tally.read, "written": tally.written}
        more = {"tokens": tokens, "usd": outcome.usd, "seconds": round(outcome.seconds, 3)}
        console.data({"batch": outcome.batch, "out": outcome.out, **counts, **more})
    elif not outcome.stopped:
        money = f", ${outcome.usd:.2f}" if outcome.usd else ""
        console.text(
            f"{outcome.out}: {tally.answered:,} of {tally.all:,} rows answered, {tally.unanswered:,} without an "
            f"answer, {tally.failed:,} failed; {tally.read:,} tokens read, {tally.written:,} written{money}; "
            f"{took(outcome.seconds)}."
        )
        console.say(f"Each reply can be read: agent0 trajectory show row-1 {outcome.batch}")
    if outcome.stopped:
        console.say(f"Stopped behind {tally.done:,} rows. Go on: {resume_command(outcome.batch)} --yes")
        raise typer.Exit(1)
    if tally.failed:
        fix = "Each says why in its error. Rows with an error are a file of questions as well."
        raise RunFailedError(f"{tally.failed:,} of {tally.all:,} rows failed.", "", fix)


def list_(as_json: console.Json = False) -> None:
    """Batches, the latest last: how far they came, and the ids that other commands take."""
    with lookup.tables() as db:
        rows = list_batches(db)
    columns = ("batch", "status", "rows", "answered", "failed", "provider", "checkpoint", "source", "out", "started")
    console.table(rows, as_json, columns)
