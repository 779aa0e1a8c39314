"""Part of the rim: how often a run asked each row of its file of questions."""

import sqlite3
from dataclasses import dataclass

from agent0.errors import Agent0Error, NotFoundError
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.events.values import Task
from agent0.infra.storage.datasets import LocalQuestions
from agent0.projections.base import Row
from agent0.projections.runs import show_run
from agent0.projections.tasks import rows_asked
from agent0.settings import QuestionsConfig, RunConfig

NEVER = {"asked": 0, "last_epoch": None, "attempts": 0, "right": 0}


@dataclass(frozen=True)
class QuestionLedger:
    """``rows``: first those that a run asked, in that order, then the remaining training rows of its file. ``trained``:
    how many training rows there are. ``problem``: why the file could not be read; empty where it was."""

    rows: list[Row]
    trained: int
    problem: str = ""

    @property
    def asked(self) -> list[Row]:
        """Those that were asked."""
        return [row for row in self.rows if row["asked"]]


def question_ledger(db: sqlite3.Connection, run: str) -> QuestionLedger:
    """Count what ``run``, an id, asked of each row, and of each passage of its documents.

    Raises:
        NotFoundError: it has no file of questions, and no documents.
    """
    config = RunConfig.recorded(show_run(db, run)["config"])
    if not config.questions.file and not config.documents.folder:
        raise NotFoundError(f"{run} has no file of questions.", fix="agent0 run start --questions FILE")
    counts, problem, train = rows_asked(db, run), "", dict[str, Task]()
    try:
        train = _train(config.questions)
    except Agent0Error as error:
        problem = str(error)
    counted = {row["row"] for row in counts}
    others = [{"row": id_, **NEVER, "question": task.question} for id_, task in train.items() if id_ not in counted]
    return QuestionLedger([*counts, *others], len(train), problem)


def _train(plan: QuestionsConfig) -> dict[str, Task]:
    """The tasks for training by the ids of their rows."""
    tasks = questions(LocalQuestions(), plan).tasks["train"] if plan.file else ()
    return {task.row.id: task for task in tasks if task.row}
