"""Part of the rim: a run as an object."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, Self

from agent0.assembly.api.arguments import checked_methods
from agent0.assembly.api.calls import Say, run_sync
from agent0.assembly.api.handles import AsyncRun, RunHandle
from agent0.assembly.api.rows import Rows
from agent0.assembly.api.trajectories import Trajectory, transcript_of
from agent0.assembly.api.transports import Transport
from agent0.assembly.tracking.measured import measured
from agent0.assembly.tracking.sinks import export
from agent0.assembly.trajectories.turn_values import TurnValues, measure_turns
from agent0.projections.attempts import list_attempts, show_attempt
from agent0.projections.base import Row
from agent0.projections.evaluation_items import list_items
from agent0.projections.evaluations import curve_with_shared
from agent0.projections.rewards import explain_rewards
from agent0.projections.runs import show_run
from agent0.projections.tasks import show_task
from agent0.settings import Settings


class Home(Protocol):
    """What a run needs of its data folder (``agent0.assembly.api.folder.Folder``)."""

    settings: Settings
    transport: Transport

    def tables(self) -> AbstractContextManager[sqlite3.Connection]:
        """A read-only connection to the tables."""
        ...

    def table(self, name: str, run: str = "") -> Rows:
        """The rows of a table, of one run where named."""
        ...

    def resume(self, run: "Run | str" = "LAST", *, say: Say | None = None, wait: bool = True) -> "Run":
        """Go on with a run to its end."""
        ...

    def fork(
        self,
        run: "Run | str" = "LAST",
        at: int = 0,
        settings: Mapping[str, object] = {},
        *,
        name: str = "",
        say: Say | None = None,
        wait: bool = True,
    ) -> "Run":
        """Start a run in the middle of another and execute it to its end."""
        ...


@checked_methods
class Run(RunHandle):
    """One run of a data folder, with what a handle has and all of its tables. Everything is read from the tables at
    each call, as of their last refresh."""

    def __init__(self, folder: Home, id: str) -> None:
        super().__init__(AsyncRun(folder.transport, id))
        self.folder = folder

    @property
    def row(self) -> Row:
        """Its row of the table of runs: name, profile, seed, counts, scores, times, and ``config``."""
        with self.folder.tables() as db:
            return show_run(db, self.id)

    @property
    def status(self) -> str:
        """running, paused, failed, finished or cancelled."""
        return str(self.row["status"])

    @property
    def config(self) -> Mapping[str, Any]:
        """The settings that it began with."""
        return dict(self.row["config"])

    def why(self) -> dict[str, Any]:
        """Why it went badly, as `agent0 run why --json` prints it, without a look at the disk and the log's server:
        its ``conclusion`` (the first line), ``well``, ``cause``, ``step``, ``evidence``, ``settings`` that differ, the
        command to ``mend`` it, ``advice``, and other causes ``also``."""
        return dict(self.overview()["why"])

    def curve(self) -> Rows:
        """Its learning curve: a row for each iteration, -1 being the untrained student."""
        with self.folder.tables() as db:
            return Rows(curve_with_shared(db, self.id))

    def export(self, form: str, folder: str | Path) -> Path:
        """Write everything that it measured as csv, parquet, tensorboard, mlflow or wandb; returns what was written.

        Raises:
            ConfigError: there is no such format.
            RequirementsError: its package is not installed.
        """
        with self.folder.tables() as db:
            return export(measured(db, self.id), form, Path(folder))

    def tasks(self) -> Rows:
        """Its tasks, with what became of them."""
        return self.table("tasks")

    def attempts(self) -> Rows:
        """Its attempts, without what was said in them."""
        return self.table("attempts")

    def table(self, name: str) -> Rows:
        """The rows of any table (`agent0 projections list`) that belong to this run.

        Raises:
            NotFoundError: there is no such table.
        """
        return self.folder.table(name, self.id)

    def trajectory(self, attempt: str) -> Trajectory:
        """One attempt, or one item of an evaluation, with everything said and done in it.

        Raises:
            NotFoundError: the run has no such attempt.
        """
        with self.folder.tables() as db:
            row = show_attempt(db, self.id, attempt)
            receipts = explain_rewards(db, self.id, attempt=attempt)
        turns = transcript_of(self.folder.settings, row)
        return Trajectory(
            run=self.id,
            task=row["task"],
            attempt=row["attempt"],
            question=row["question"],
            answer=row["answer"],
            correct=None if row["correct"] is None else bool(row["correct"]),
            reward=row["reward"],
            turns=tuple(turns),
            calls=Rows(row.pop("calls")),
            verdicts=Rows(row.pop("verdicts")),
            receipts=Rows(receipts),
            row=row,
        )

    def trajectories(self, *, correct: bool | None = None, evaluation: str = "") -> Iterator[Trajectory]:
        """Its attempts one by one, in the order in which they were asked for, or the items of an ``evaluation`` (its
        id, or a split, checkpoint or benchmark); ``correct`` picks right or wrong ones."""
        with self.folder.tables() as db:
            if evaluation:
                rows = list_items(db, self.id, evaluation, correct, limit=-1)
            else:
                rows = list_attempts(db, self.id, correct=correct, limit=-1)
        for row in rows:
            yield self.trajectory(row["attempt"])

    def turn_values(
        self, attempt: str, turns: Sequence[int] | None = None, *, n: int = 16, seed: int = 0
    ) -> TurnValues:
        """Monte-Carlo values of an attempt's turns (None: of all), ``n`` continuations each, as `agent0 trajectory
        fork` measures them; errors as for ``agent0.assembly.trajectories.turn_values.measure_turns``."""
        return run_sync(lambda: measure_turns(self.folder.settings, self.id, attempt, turns, n, seed))

    def explain(self, name: str) -> Rows:
        """The receipts of a task or an attempt: each part with its inputs, value and weight.

        Raises:
            NotFoundError: the run has no such task or attempt.
        """
        key, show = ("attempt", show_attempt) if "-a" in name else ("task", show_task)
        with self.folder.tables() as db:
            show(db, self.id, name)
            return Rows(explain_rewards(db, self.id, **{key: name}))

    def resume(self, *, wait: bool = True, say: Say | None = None) -> Self:
        """Go on with it to its end, as ``Folder.resume`` does."""
        self.folder.resume(self, say=say, wait=wait)
        return self

    def fork(
        self,
        at: int = 0,
        settings: Mapping[str, object] = {},
        *,
        name: str = "",
        wait: bool = True,
        say: Say | None = None,
    ) -> "Run":
        """Start a run that goes on from this one, as ``Folder.fork`` does."""
        return self.folder.fork(self, at, settings, name=name, say=say, wait=wait)

    def curve_svg(self) -> str:
        """Its learning curve as an SVG element; empty where nothing was evaluated yet."""
        from agent0.report.charts.learning_curve import curve_svg  # noqa: PLC0415 - matplotlib

        with self.folder.tables() as db:
            return str(curve_svg(db, self.id))
